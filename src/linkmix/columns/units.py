"""Units and currencies that may stand beside a number."""

CURRENCIES = (
    *(
        "US$",
        "A$",
        "C$",
        "HK$",
        "NZ$",
        "R$",
        "S$",
        "JP¥",
        "$",
        "€",
        "£",
        "¥",
        "￥",
        "₹",
        "₽",
        "₩",
        "₺",
        "₪",
        "₫",
        "฿",
        "₴",
        "₦",
    ),
    *("AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "ILS", "INR", "JPY", "KRW", "MXN"),
    *("NOK", "NZD", "PLN", "RUB", "SEK", "SGD", "TRY", "USD", "ZAR", "Fr.", "Kč", "Rs.", "Rs", "kr.", "kr", "zł", "Ft"),
)
"""What may stand before a number, or after it."""

DIMENSIONS: dict[str, tuple[str, ...]] = {
    "share": ("%", "‰", "pp", "bp", "ppm", "ppb"),
    "multiple": ("x", "k", "K", "M", "bn", "mn", "tsd", "Tsd.", "Mio", "Mio.", "Mrd", "Mrd."),
    "temperature": ("°C", "°F", "C", "F", "K", "°"),
    "mass": ("kg", "g", "mg", "µg", "μg", "ug", "t", "lb", "oz", "st", "stone", "tons", "tonnes"),
    "length": ("km", "m", "dm", "cm", "mm", "µm", "μm", "nm", "mi", "ft", "in", "yd", "px"),
    "area": ("km²", "m²", "cm²", "mm²", "ha", "km2", "m2", "cm2", "mm2", "sqm", "qm", "sqft", "sq ft", "acres"),
    "volume": ("m³", "cm³", "m3", "cm3", "l", "L", "dl", "dL", "cl", "ml", "mL", "µl", "gal", "fl oz", "pt", "cc"),
    "speed": ("km/h", "kmh", "kph", "mph", "m/s", "kn", "knots"),
    "time": ("s", "ms", "µs", "ns", "min", "h", "days", "d", "weeks", "w", "months", "mo", "years", "y", "a"),
    "data": ("B", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "bits", "bytes"),
    "rate": ("Mbit/s", "Mbps", "Gbps", "kbps", "bpm", "rpm", "fps", "dpi"),
    "consumption": ("mpg", "l/100km", "l/100 km"),
    "frequency": ("Hz", "kHz", "MHz", "GHz"),
    "power": ("W", "kW", "MW", "GW", "hp", "PS"),
    "energy": ("Wh", "kWh", "MWh", "J", "kJ", "cal", "kcal", "eV"),
    "voltage": ("V", "mV", "kV"),
    "current": ("A", "mA"),
    "charge": ("Ah", "mAh"),
    "resistance": ("Ω", "kΩ", "ohm"),
    "force": ("N", "kN"),
    "torque": ("Nm",),
    "pressure": ("Pa", "hPa", "kPa", "bar", "mbar", "psi", "mmHg"),
    "concentration": (
        "mg/dl",
        "mg/dL",
        "g/dl",
        "g/dL",
        "g/l",
        "g/L",
        "mmol/l",
        "mmol/L",
        "µmol/l",
        "U/l",
        "U/L",
        "IU/L",
    ),
    "loudness": ("dB",),
    "pieces": ("pcs", "Stück", "Stk", "St.", "ea"),
    "money": CURRENCIES,
}
"""Units by what they measure. Numbers of one column may not be in different ones."""
_DIMENSION_OF = {unit: dimension for dimension, units in DIMENSIONS.items() for unit in reversed(units)}
_SAME = {
    **dict.fromkeys(("lbs", "lb.", "lbs.", "pound", "pounds"), "lb"),
    **dict.fromkeys(("kgs", "kilo", "kilos", "Kg", "KG", "kg."), "kg"),
    **dict.fromkeys(("gram", "grams", "gr"), "g"),
    **dict.fromkeys(("mile", "miles"), "mi"),
    **dict.fromkeys(("inch", "inches", '"', "''", "″"), "in"),
    **dict.fromkeys(("foot", "feet"), "ft"),
    **dict.fromkeys(("metre", "metres", "meter", "meters"), "m"),
    **dict.fromkeys(("litre", "litres", "liter", "liters"), "l"),
    **dict.fromkeys(("sec", "secs", "sec.", "second", "seconds"), "s"),
    **dict.fromkeys(("mins", "min.", "minute", "minutes"), "min"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours", "Std", "Std.", "Stunden"), "h"),
    **dict.fromkeys(("day", "Tag", "Tage"), "days"),
    **dict.fromkeys(("week", "Woche", "Wochen"), "weeks"),
    **dict.fromkeys(("month", "Monat", "Monate"), "months"),
    **dict.fromkeys(("year", "yr", "yrs", "Jahr", "Jahre"), "years"),
    **dict.fromkeys(("percent", "per cent", "Prozent", "pct"), "%"),
    **dict.fromkeys(("euro", "euros", "Euro", "Euros"), "€"),
    **dict.fromkeys(("dollar", "dollars"), "$"),
    **dict.fromkeys(("pc", "piece", "pieces"), "pcs"),
    **dict.fromkeys(("ºC",), "°C"),
    **dict.fromkeys(("acre",), "acres"),
    **dict.fromkeys(("bit",), "bits"),
    **dict.fromkeys(("byte", "Bytes"), "bytes"),
}


def canonical(unit: str) -> str:
    """One way to write a unit: years for yr, kg for KG.

    Examples
    --------
    >>> canonical("yrs"), canonical("KM"), canonical("eur"), canonical("stars")
    ('years', 'km', 'EUR', 'stars')
    """
    if unit in _DIMENSION_OF:
        return unit
    for way in (unit, unit.lower(), unit.upper()):
        found = _SAME.get(way, way)
        if found in _DIMENSION_OF:
            return found
    return unit


def dimension(unit: str) -> str | None:
    """What a unit measures; None if it is not known.

    Examples
    --------
    >>> dimension("kg"), dimension("CHF"), dimension("stars")
    ('mass', 'money', None)
    """
    return _DIMENSION_OF.get(unit)


def are_same(one: str, other: str) -> bool:
    """Whether two units are one: the same, or the singular and the plural of a unit that is not known.

    Examples
    --------
    >>> are_same("star", "stars"), are_same("m", "ms")
    (True, False)
    """
    if one == other:
        return True
    return (
        dimension(one) is None
        and dimension(other) is None
        and one != "" != other
        and abs(len(one) - len(other)) == 1
        and (one + "s" == other or other + "s" == one)
    )
