import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { refreshingAppShellQuery } from '../../api/account.ts'
import { ChannelState } from '../../components/channel-state.tsx'
import { failureDescription } from '../../components/failure-description.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './overview-page.module.css'

const REFRESH_MS = 30_000

/** Channels that fail, are paused, or are being tried again; a sentence if there are none. */
export function TroubledChannels() {
  const { overview, channels, failures } = useTexts()
  const { data } = useQuery(refreshingAppShellQuery(REFRESH_MS, REFRESH_MS))
  const troubled = data?.troubled_channels
  if (!troubled) return null
  return (
    <section aria-label={overview.troubled}>
      <h2 className={classes['heading']}>
        {overview.troubled}
        <Link to="/channels">{channels.back}</Link>
      </h2>
      {troubled.length === 0 ? (
        <p className={classes['quiet']}>{overview.noTrouble}</p>
      ) : (
        <ul className={classes['troubled']}>
          {troubled.map((health) => (
            <li key={health.id}>
              <Link to="/channels/$id" params={{ id: String(health.id) }}>
                {health.name}
              </Link>
              <ChannelState isEnabled health={health} at={data.server_time} />
              {health.last_error && <small>{failureDescription(health.last_error.cause, failures)}</small>}
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
