import type { Quota } from './money.ts'
import { useFormats } from './session.tsx'

/** An amount, with its exact value in the tooltip. */
export function MoneyText({ quota }: { readonly quota: Quota }) {
  const { money, exact } = useFormats()
  return <span title={exact(quota)}>{money(quota)}</span>
}
