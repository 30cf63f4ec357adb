import type { Settings } from '../../domain/settings.ts'
import type { CallFeature } from '../../call/feature.ts'
import type { ModelRetirements } from '../../upstreams/model-retirements.ts'

/** Adds headers with the date on which the vendor shuts down the model to each answer, if it is known. */
export function modelDates(ends: ModelRetirements, settings: () => Settings): CallFeature {
  return {
    headers({ record }) {
      if (ends.of(settings()).isEmpty) return undefined
      return () => (record.model === undefined ? undefined : ends.of(settings()).endOf(record.model)?.headers)
    },
  }
}
