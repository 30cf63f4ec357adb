import { useTexts } from '../locales/use-texts.tsx'
import classes from './budget-meter.module.css'
import { type BudgetState, budgetExhaustionTime, heldPercent, usedPercent } from './budget.ts'
import { useFormatters } from './session.tsx'
import { isoDay } from './time.ts'

/** A budget of which at least this percentage is used is shown as a warning, as in alerts. */
const WARN = 80
const FULL = 100

/**
 * Shows how much of a budget is used and how much is held for calls under way, when it resets, and when it
 * would be used up at the present rate.
 */
export function BudgetMeter({ name, state }: { readonly name: string; readonly state: BudgetState }) {
  const { limits, common } = useTexts()
  const { money, exact, day, minute, time, timeZone } = useFormatters()
  const { budget, budget_used, budget_held: held, budget_resets_at: resetsAt } = state
  const percent = usedPercent(state)
  const now = Date.now() / 1000
  const endsAt = budgetExhaustionTime(state, now)
  const spent = limits.meter(money(budget_used), money(budget), day(resetsAt))
  const text = held > 0 ? `${spent}${common.comma}${limits.held(money(held))}` : spent
  const isToday = endsAt !== undefined && isoDay(endsAt, timeZone) === isoDay(now, timeZone)
  const end = endsAt !== undefined && (isToday ? limits.endsAt(minute(endsAt)) : limits.endsOn(day(endsAt)))
  const pace = end || (percent === FULL ? limits.usedUp : undefined)
  return (
    <div
      role="meter"
      aria-label={limits.budgetOf(name)}
      aria-valuemin={0}
      aria-valuemax={FULL}
      aria-valuenow={percent}
      aria-valuetext={pace === undefined ? text : `${text}${common.comma}${pace}`}
      title={`${exact(budget_used)} / ${exact(budget)}, ${limits.held(exact(held))}, ${time(resetsAt)}`}
      className={classes['meter']}
      data-tone={percent === FULL ? 'bad' : percent >= WARN || end ? 'warn' : undefined}
    >
      <div className={classes['bar']}>
        <span style={{ width: `${percent}%` }} />
        {held > 0 && <span className={classes['held']} style={{ width: `${heldPercent(state)}%` }} />}
      </div>
      <p className={classes['text']}>
        {text}
        {pace !== undefined && (
          <>
            {common.comma}
            <span className={classes['pace']}>{pace}</span>
          </>
        )}
      </p>
    </div>
  )
}

/** A budget, with the name of the user, key or group that has it. */
export interface NamedBudget {
  readonly name: string
  readonly state: BudgetState
}

/** The meters of several budgets, each with its name; shows nothing if there are no budgets. */
export function BudgetMeters({ budgets }: { readonly budgets: readonly NamedBudget[] }) {
  const { limits } = useTexts()
  const shown = budgets.filter(({ state }) => state.budget > 0)
  if (shown.length === 0) return null
  return (
    <ul className={classes['list']} aria-label={limits.title}>
      {shown.map(({ name, state }) => (
        <li key={name}>
          <div className={classes['name']}>{name}</div>
          <BudgetMeter name={name} state={state} />
        </li>
      ))}
    </ul>
  )
}
