import { type Decimal, isMore } from './decimal.ts'

const ZERO: Decimal = { digits: 0n, scale: 0 }

/** Size and quality of an image, as requests and responses spell them: `1024x1024`, `hd`. */
export interface ImageForm {
  readonly size?: string | undefined
  readonly quality?: string | undefined
}

/**
 * USD per image, by `SIZE/QUALITY`, `SIZE`, or `default`. Empty = images have no price. Without `default`, an
 * image of another form costs as much as the dearest.
 */
export type ImagePrices = Readonly<Record<string, Decimal>>

/** Prices of images computed for one group, in the units of the other rates. */
export interface ImageRates {
  readonly byForm: Readonly<Record<string, bigint>>
  readonly dearest: bigint
}

/** Images that cost nothing. */
const NO_IMAGE_RATES: ImageRates = { byForm: {}, dearest: 0n }

/** Converts each price. */
export function imageRatesOf(prices: ImagePrices, rate: (price: Decimal) => bigint): ImageRates {
  const entries = Object.entries(prices).map(([form, price]): [string, bigint] => [form, rate(price)])
  if (entries.length === 0) return NO_IMAGE_RATES
  const dearest = entries.reduce((most, [, value]) => (value > most ? value : most), 0n)
  return { byForm: Object.fromEntries(entries), dearest }
}

/** The rate of an image of this form: that of size and quality, of the size, the default, or the dearest. */
export function imageRate({ byForm, dearest }: ImageRates, { size, quality }: ImageForm): bigint {
  const forms = size === undefined ? [] : [`${size}/${quality ?? ''}`, size]
  for (const form of [...forms, 'default']) if (Object.hasOwn(byForm, form)) return byForm[form] ?? dearest
  return dearest
}

/** The price of an image of this form, as `imageRate` chooses. */
export function imagePrice(prices: ImagePrices, { size, quality }: ImageForm): Decimal {
  const forms = size === undefined ? [] : [`${size}/${quality ?? ''}`, size]
  for (const form of [...forms, 'default']) if (Object.hasOwn(prices, form)) return prices[form] ?? ZERO
  return Object.values(prices).reduce((most, each) => (isMore(each, most) ? each : most), ZERO)
}
