import type { RemainingSpend } from '../../src/domain/remaining-spend.ts'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './budget-meter.module.css'
import { MoneyText } from './money-text.tsx'

/**
 * Shows how much may still be spent, and which limit determines that. `group` is the name of the group whose
 * budget may be that limit.
 */
export function RemainingSpendText({
  of: { left, left_by: by },
  group,
}: {
  readonly of: RemainingSpend
  readonly group: string
}) {
  const { common, limits } = useTexts()
  if (left === null) return common.unlimited
  return (
    <>
      <MoneyText quota={left} />
      {by && <span className={classes['by']}>{limits.by[by](group)}</span>}
    </>
  )
}
