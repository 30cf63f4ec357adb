import { BudgetMeters } from '../../components/budget-meter.tsx'
import { useAccountLimits } from '../../components/use-account-limits.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './overview-page.module.css'

/** The budgets of the account, its groups and its keys; shows nothing if there are none. */
export function OverviewBudgets() {
  const { limits } = useTexts()
  const { budgets, recentKeys } = useAccountLimits()
  const ofKeys = recentKeys.filter(({ budget }) => budget > 0).map((key) => ({ name: key.name, state: key }))
  const all = [...budgets, ...ofKeys]
  if (all.length === 0) return null
  return (
    <section aria-label={limits.title}>
      <h2 className={classes['heading']}>{limits.title}</h2>
      <BudgetMeters budgets={all} />
    </section>
  )
}
