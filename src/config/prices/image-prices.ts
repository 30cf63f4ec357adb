import { z } from 'zod'
import type { ImagePrices } from '../../domain/image-price.ts'
import { decimal, dictionary, type Field } from '../fields.ts'
import { YamlScalar } from '../yaml-node.ts'

/** A size, a size with a quality, or `default`: `1024x1024`, `1024x1024/hd`, `auto/high`. */
const FORM = /^[a-z0-9][\w.-]{0,40}(?:\/[a-z0-9][\w.-]{0,40})?$/i

const amount = decimal()
const byForm = dictionary(amount, 'a mapping from SIZE, SIZE/QUALITY or default to USD per image')

/** USD per image: a number, or a mapping by size and quality. `docs/configuration.md: Prices`. */
export const imagePrices: Field<ImagePrices> = z.unknown().transform((given, ctx): ImagePrices => {
  const isOne = given instanceof YamlScalar
  const { data, error } = isOne ? amount.safeParse(given) : byForm.safeParse(given)
  for (const { message, path } of error?.issues ?? [])
    ctx.issues.push({ code: 'custom', message, path, input: undefined })
  if (data === undefined) return z.NEVER
  if (!(data instanceof Map)) return { default: data as ImagePrices[string] }
  const entries = [...(data as ReadonlyMap<string, ImagePrices[string]>)]
  for (const [form] of entries) {
    if (FORM.test(form)) continue
    const message = 'expected SIZE, SIZE/QUALITY or default, such as 1024x1024/hd'
    ctx.issues.push({ code: 'custom', message, path: [form], input: undefined })
  }
  if (entries.length === 0)
    ctx.issues.push({
      code: 'custom',
      message: 'expected a price per image, found nothing',
      input: undefined,
    })
  return Object.fromEntries(entries)
})
