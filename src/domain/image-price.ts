import { type Decimal, isMore, ZERO } from './decimal.ts'

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

/** The price of an image of this form: that of size and quality, of the size, the default, or the dearest. */
export function imagePrice(prices: ImagePrices, { size, quality }: ImageForm): Decimal {
  const forms = size === undefined ? [] : [`${size}/${quality ?? ''}`, size]
  for (const form of [...forms, 'default']) if (Object.hasOwn(prices, form)) return prices[form] ?? ZERO
  return dearestImage(prices)
}

/** The highest price of an image; 0 without any. */
export function dearestImage(prices: ImagePrices): Decimal {
  return Object.values(prices).reduce((most, each) => (isMore(each, most) ? each : most), ZERO)
}
