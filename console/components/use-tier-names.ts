import type { Call } from '../api/calls.ts'
import { useTexts } from '../locales/use-texts.tsx'

/** Display names of service tiers. An unknown tier is shown as the gateway names it. */
export function useTierNames(): {
  readonly nameOf: (tier: string) => string
  /** The name of the tier that served a call, and of the requested tier if that differs. */
  readonly textOf: (call: Pick<Call, 'service_tier' | 'requested_service_tier'>) => string
} {
  const { logs } = useTexts()
  const names: Readonly<Record<string, string>> = logs.tiers
  const nameOf = (tier: string): string => names[tier] ?? tier
  return {
    nameOf,
    textOf: (call) =>
      isServedInAnotherTier(call)
        ? logs.askedFor(nameOf(call.requested_service_tier), nameOf(call.service_tier))
        : nameOf(call.service_tier),
  }
}

/** Whether a call was served in another tier than it requested. */
export function isServedInAnotherTier({
  service_tier: served,
  requested_service_tier: asked,
}: Pick<Call, 'service_tier' | 'requested_service_tier'>): boolean {
  return asked !== '' && served !== '' && asked !== served
}
