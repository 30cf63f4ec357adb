const LEAST = 0.01

/** A short text of an amount above a bar, which has room for five characters. */
export function barLabel(amount: number, tag: string): string {
  if (amount <= 0) return ''
  const short = new Intl.NumberFormat(tag, { notation: 'compact', maximumSignificantDigits: 3 })
  return amount < LEAST ? `<${short.format(LEAST)}` : short.format(Number(amount.toPrecision(2)))
}
