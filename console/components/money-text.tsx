import type { Quota } from './money.ts'
import { useFormatters } from './session.tsx'

/** An amount, with its exact value in the tooltip. */
export function MoneyText({ quota }: { readonly quota: Quota }) {
  const { money, exact } = useFormatters()
  return <span title={exact(quota)}>{money(quota)}</span>
}
