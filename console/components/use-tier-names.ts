import type { Call } from '../api/calls.ts'
import { useTexts } from '../locales/use-texts.tsx'

/** Names of tiers of service for readers. A tier that the console does not know has its own name. */
export function useTierNames(): {
  readonly nameOf: (tier: string) => string
  /** The tier that was served, and the requested one if it differs. */
  readonly textOf: (call: Pick<Call, 'service_tier' | 'requested_service_tier'>) => string
} {
  const { logs } = useTexts()
  const names: Readonly<Record<string, string>> = logs.tiers
  const nameOf = (tier: string): string => names[tier] ?? tier
  return {
    nameOf,
    textOf: (call) =>
      isAnotherTier(call)
        ? logs.askedFor(nameOf(call.requested_service_tier), nameOf(call.service_tier))
        : nameOf(call.service_tier),
  }
}

/** Whether a call was served in another tier than the requested one. */
export function isAnotherTier({
  service_tier: served,
  requested_service_tier: asked,
}: Pick<Call, 'service_tier' | 'requested_service_tier'>): boolean {
  return asked !== '' && served !== '' && asked !== served
}
