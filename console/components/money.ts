/** How quota is displayed, as configured on the server. */
export interface MoneyDisplay {
  readonly kind: 'USD' | 'CNY' | 'TOKENS'
  /** Quota units in one US dollar. */
  readonly quotaPerUnit: number
  /** CNY per USD, as a decimal text. */
  readonly usdExchangeRate: string
}

/** Decimal places of exact amounts. */
const EXACT_DIGITS = 12
/**
 * The smallest amount, in the displayed currency, that is shown with digits; smaller ones are shown as `<`
 * this amount.
 */
const SMALLEST = 0.000001

/** A decimal as an integer and its number of decimal places. */
interface Decimal {
  readonly digits: bigint
  readonly scale: number
}

/** Quota units: integers, or a decimal text where they are not rounded yet. */
export type Quota = number | string

/**
 * An amount as it is displayed: two decimals, or four significant digits for amounts below one; never rounded
 * to zero.
 */
export function formatMoney(quota: Quota, display: MoneyDisplay, locale: string): string {
  if (display.kind === 'TOKENS')
    return new Intl.NumberFormat(locale, { maximumFractionDigits: EXACT_DIGITS }).format(Number(quota))
  const amount = Number(exactAmount(quota, display))
  const size = Math.abs(amount)
  const currency = { style: 'currency', currency: display.kind, currencyDisplay: 'narrowSymbol' } as const
  if (amount === 0 || size >= 1)
    return new Intl.NumberFormat(locale, { ...currency, minimumFractionDigits: 2 }).format(amount)
  if (size < SMALLEST) {
    const smallest = new Intl.NumberFormat(locale, { ...currency, maximumFractionDigits: 6 }).format(SMALLEST)
    return amount < 0 ? `-<${smallest}` : `<${smallest}`
  }
  return new Intl.NumberFormat(locale, {
    ...currency,
    minimumFractionDigits: 2,
    maximumFractionDigits: EXACT_DIGITS,
  }).format(Number(amount.toPrecision(4)))
}

/** The exact amount as a plain decimal text, with twelve decimal places. */
export function exactAmount(quota: Quota, { kind, quotaPerUnit, usdExchangeRate }: MoneyDisplay): string {
  if (kind === 'TOKENS') return String(quota)
  const rate = kind === 'CNY' ? decimal(usdExchangeRate) : { digits: 1n, scale: 0 }
  const { digits, scale } = decimal(String(quota))
  const scaled = digits * rate.digits * 10n ** BigInt(EXACT_DIGITS)
  const amount = divided(scaled, BigInt(quotaPerUnit) * 10n ** BigInt(rate.scale + scale))
  return decimalText(amount, EXACT_DIGITS)
}

/**
 * The quota units of a typed amount, rounded to an integer; undefined if the text is not an amount of 0 or
 * more.
 */
export function parseMoney(
  text: string,
  { kind, quotaPerUnit, usdExchangeRate }: MoneyDisplay,
): number | undefined {
  const given = withoutGroups(text)
  if (!/^(?:\d{1,15}(?:\.\d{0,12})?|\.\d{1,12})$/.test(given)) return undefined
  const { digits, scale } = decimal(given)
  const per = kind === 'TOKENS' ? 1n : BigInt(quotaPerUnit)
  const rate = kind === 'CNY' ? decimal(usdExchangeRate) : { digits: 1n, scale: 0 }
  const quota = divided(digits * per * 10n ** BigInt(rate.scale), rate.digits * 10n ** BigInt(scale))
  return quota <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(quota) : undefined
}

/**
 * A typed number without the commas between its groups of three digits. Other commas stay, since they may be those of
 * decimals.
 */
export function withoutGroups(text: string): string {
  const given = text.trim()
  return /^[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?$/.test(given) ? given.replaceAll(',', '') : given
}

/** The unit of amounts, shown beside a field. */
export function moneyUnit({ kind }: MoneyDisplay): string {
  return kind
}

function decimal(text: string): Decimal {
  const [whole = '', fraction = ''] = text.split('.')
  return { digits: BigInt(`${whole}${fraction}` || '0'), scale: fraction.length }
}

/** Divides, rounding half away from zero. */
function divided(dividend: bigint, divisor: bigint): bigint {
  const doubled = 2n * dividend + (dividend < 0n ? -divisor : divisor)
  return doubled / (2n * divisor)
}

function decimalText(digits: bigint, scale: number): string {
  const sign = digits < 0n ? '-' : ''
  const text = (digits < 0n ? -digits : digits).toString().padStart(scale + 1, '0')
  const fraction = text.slice(-scale).replace(/0+$/, '')
  return `${sign}${text.slice(0, -scale)}${fraction === '' ? '' : `.${fraction}`}`
}
