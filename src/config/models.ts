import { MODEL_SETTINGS, type ModelSettings } from '../domain/records/model.ts'
import { dictionary, type Field, list, name, section } from './fields.ts'
import { price } from './prices/prices.ts'
import { rateLimit } from './rate-limits.ts'
import { declaredShape } from './record-fields.ts'

const settings = declaredShape(MODEL_SETTINGS.fields, {
  vendor: name('the name of a vendor'),
  price,
  rate_limit: rateLimit,
  fallback: list(name('the name of a model'), 'a list of models'),
})

/** `docs/configuration.md: Models`. */
export const models: Field<ReadonlyMap<string, ModelSettings>> = dictionary(
  section(settings),
  'a mapping from model names',
).superRefine((given, ctx) => {
  for (const [model, { fallback }] of given) {
    const index = fallback.indexOf(model)
    if (index === -1) continue
    const message = 'expected another model than the one that it stands in for'
    ctx.addIssue({ code: 'custom', path: [model, 'fallback', index], message })
  }
})
