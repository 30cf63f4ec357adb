import { Button } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { RecentKey } from '../../api/account.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './overview-page.module.css'

/** The most recently used keys. */
export function KeyList({ keys: recent }: { readonly keys: readonly RecentKey[] }) {
  const { keys, common } = useTexts()
  if (recent.length === 0)
    return (
      <EmptyState text={keys.empty}>
        <Button component={Link} to="/keys" search={{ new: '1' } as never}>
          {keys.create}
        </Button>
      </EmptyState>
    )
  return (
    <ul className={classes['keys']}>
      {recent.map(({ id, name, used_quota, accessed_time }) => (
        <li key={id}>
          <Link to="/keys/$id" params={{ id: String(id) }}>
            {name}
          </Link>
          <span>{accessed_time > 0 ? <TimeText at={accessed_time} /> : common.never}</span>
          <MoneyText quota={used_quota} />
        </li>
      ))}
    </ul>
  )
}
