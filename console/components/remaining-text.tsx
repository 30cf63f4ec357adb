import type { Remaining } from '../../src/domain/remaining.ts'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './budget-meter.module.css'
import { MoneyText } from './money-text.tsx'

/** What may still be spent, and which limit says so. `group` is the one whose budget may bind. */
export function RemainingText({
  of: { left, left_by: by },
  group,
}: {
  readonly of: Remaining
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
