import { Link } from '@tanstack/react-router'
import type { Usage } from '../../api/usage.ts'
import { MoneyText } from '../../components/money-text.tsx'
import { useFormatters } from '../../components/session.tsx'
import { valueToUrlText } from '../../components/url-values.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './overview-page.module.css'

/** The users with the highest cost this month, each with the share of the total. */
export function TopSpenders({ month }: { readonly month: Usage }) {
  const { overview } = useTexts()
  const { percent } = useFormatters()
  const spenders = month.series
    .map(({ key, label, points }) => ({
      key,
      label,
      quota: points.reduce((sum, { quota }) => sum + quota, 0),
    }))
    .filter(({ quota }) => quota > 0)
  if (spenders.length === 0) return <p className={classes['quiet']}>{overview.noSpend}</p>
  return (
    <ol className={classes['keys']}>
      {spenders.map(({ key, label, quota }) => (
        <li key={key}>
          <Link to="/usage" search={{ period: 'month', user: valueToUrlText(label) }}>
            {label}
          </Link>
          <span>{percent(quota / month.totals.quota)}</span>
          <MoneyText quota={quota} />
        </li>
      ))}
    </ol>
  )
}
