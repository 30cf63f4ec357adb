import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { channelHealthQuery } from '../../api/channel-health.ts'
import { ChannelState } from '../../parts/channel-state.tsx'
import { useSignedIn } from '../../parts/session.tsx'
import { useTexts } from '../../texts/use-texts.tsx'
import classes from './overview-page.module.css'

const REFRESH_MS = 30_000
const QUIET: ReadonlySet<string> = new Set(['works', 'disabled'])

/** Channels that fail, rest, or are tried again; one sentence while there is none. */
export function TroubledChannels() {
  const { overview, channels } = useTexts()
  const { profile } = useSignedIn()
  const { data } = useQuery(channelHealthQuery(profile.id, REFRESH_MS))
  if (!data) return null
  const troubled = data.items.filter(({ state }) => !QUIET.has(state))
  return (
    <section aria-label={overview.troubled}>
      <h2 className={classes['heading']}>
        {overview.troubled}
        <Link to="/channels">{channels.back}</Link>
      </h2>
      {troubled.length === 0 ? (
        <p className={classes['quiet']}>{overview.noTrouble}</p>
      ) : (
        <ul className={classes['keys']}>
          {troubled.map((health) => (
            <li key={health.id}>
              <Link to="/channels/$id" params={{ id: String(health.id) }}>
                {health.name}
              </Link>
              <span>{health.last_error?.cause}</span>
              <ChannelState isEnabled health={health} at={data.at} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
