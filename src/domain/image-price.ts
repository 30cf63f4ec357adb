import { type Decimal, isMore, ZERO } from './decimal.ts'

/** Size and quality of an image, as written in requests and responses: `1024x1024`, `hd`. */
export interface ImageForm {
  readonly size?: string | undefined
  readonly quality?: string | undefined
}

/**
 * USD per image, by `SIZE/QUALITY`, `SIZE`, or `default`. If empty, images have no price. Without `default`,
 * an image of another form costs as much as the most expensive one.
 */
export type ImagePrices = Readonly<Record<string, Decimal>>

/**
 * The price of an image of this form: that of its size and quality, of its size, the default, or the highest.
 */
export function imagePrice(prices: ImagePrices, { size, quality }: ImageForm): Decimal {
  const forms = size === undefined ? [] : [`${size}/${quality ?? ''}`, size]
  for (const form of [...forms, 'default']) if (Object.hasOwn(prices, form)) return prices[form] ?? ZERO
  return dearestImage(prices)
}

/** The highest price of an image; 0 if there is none. */
export function dearestImage(prices: ImagePrices): Decimal {
  return Object.values(prices).reduce((most, each) => (isMore(each, most) ? each : most), ZERO)
}
