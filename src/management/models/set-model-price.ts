import { z } from 'zod'
import { requireVersion } from '../../domain/object-version.ts'
import type { Json } from '../../domain/json.ts'
import { GatewayError } from '../../errors.ts'
import type { EntryChange } from '../../store/operations/configuration.ts'
import { versionField } from '../expected-version.ts'
import type { AdministrationParts } from '../parts.ts'
import { anyField, textField } from '../text-fields.ts'
import { pricePart } from './managed-models.ts'

const A_PRICE = { error: 'expected null, or an object of prices as in gateway.yaml' }

/** A model and its price, whose fields the schema of gateway.yaml checks; null for the built-in price. */
export const modelPriceBody = z.object(
  {
    model: textField('expected the name of a model')
      .min(1, { error: 'expected the name of a model' })
      .max(200, {
        error: 'expected the name of a model, of at most 200 characters',
      }),
    price: z.record(textField('expected the name of a price'), anyField(), A_PRICE).nullable(),
    version: versionField.nullish(),
  },
  { error: 'expected an object with model and price' },
)

/**
 * Sets the price of one model, replacing what was set before, including ratios; null removes what was set.
 * Throws `managed_by_file` if the file declares the model, `changed_meanwhile` if the model has a version
 * other than the given one, and `invalid_request` if gateway.yaml would not accept the price.
 */
export async function setModelPrice(
  { store, settings, liveConfig }: AdministrationParts,
  { model, price, version }: z.output<typeof modelPriceBody>,
): Promise<void> {
  if (liveConfig.declared.models.has(model)) {
    throw new GatewayError(
      'managed_by_file',
      `model: models.${model} is set in gateway.yaml, and can be changed there alone`,
    )
  }
  const value = price === null ? undefined : { exact: price as { readonly [key: string]: Json } }
  const isBased = version !== undefined && version !== null
  let expected: readonly EntryChange[] = []
  await liveConfig.change(
    (stored) => {
      if (isBased) {
        requireVersion(version, pricePart(settings(), liveConfig, stored, model).version)
        const before = stored.entries.find(({ section, name }) => section === 'ratios' && name === model)
        // Another node may set the price before this one writes, so the write checks this value.
        expected = [{ section: 'ratios', name: model, value: before?.value }]
      }
      const others = stored.entries.filter(({ section, name }) => section !== 'ratios' || name !== model)
      const entry = value && { section: 'ratios' as const, name: model, value }
      return { ...stored, entries: entry ? [...others, entry] : others }
    },
    () => store.write('setEntries', { changes: [{ section: 'ratios', name: model, value }], expected }),
  )
}
