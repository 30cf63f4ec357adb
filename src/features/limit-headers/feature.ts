import type { Model } from '../../domain/records/model.ts'
import type { Settings } from '../../domain/settings.ts'
import type { CallLimits } from '../../call/call-limits.ts'
import type { CallFeature } from '../../call/feature.ts'
import type { CallRecord } from '../../call/incoming-call.ts'
import { limitHeadersOf } from './limit-headers.ts'

/** Adds headers with the remaining limits of the API key to each answer: `docs/api.md: Limits`. */
export function limitHeaders(limits: CallLimits, settings: () => Settings): CallFeature {
  return {
    headers({ record }, caller, protocol) {
      const formOf = limitHeadersOf(protocol)
      return (
        formOf &&
        (() => {
          const now = settings()
          const figures = limits.figures(now, caller, modelOf(now, record))
          return figures && formOf(figures, Date.now())
        })
      )
    },
    // Asks other nodes how much of the limits they have used.
    refused({ record }, caller) {
      const now = settings()
      return limits.refresh(now, caller, modelOf(now, record))
    },
  }
}

/** The configured model of a call; undefined if the name has not been read yet or is not configured. */
function modelOf({ models }: Settings, { model }: CallRecord): Model | undefined {
  return model === undefined ? undefined : models.get(model)
}
