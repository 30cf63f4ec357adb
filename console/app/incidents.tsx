import { ActionIcon, Button } from '@mantine/core'
import { IconChevronDown, IconChevronUp } from '@tabler/icons-react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { appShellQuery, type ChannelIncident, troubleIn, troubleQuery } from '../api/account.ts'
import { testChannel } from '../api/channels.ts'
import { setChannelDraining, reloadChannels, setChannelEnabled } from '../components/channel-actions.ts'
import { failureDescription } from '../components/failure-description.ts'
import { showNotice, showFailure } from '../components/notify.tsx'
import { useFormatters, useSignedInAccount } from '../components/session.tsx'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './incidents.module.css'

const REFRESH_MS = 30_000

/** Lists the channels in trouble above every page of an administrator, until they recover or are hidden. */
export function Incidents() {
  const { isAdmin } = useSignedInAccount()
  return isAdmin ? <WatchedIncidents /> : null
}

function WatchedIncidents() {
  const client = useQueryClient()
  const { incidents: t } = useTexts()
  const { data } = useQuery({
    ...troubleQuery(REFRESH_MS),
    // The frame of the page has loaded this data already, so this sends no request at first.
    initialData: () => {
      const shell = client.getQueryData(appShellQuery.queryKey)
      return shell && troubleIn(shell)
    },
    initialDataUpdatedAt: () => client.getQueryState(appShellQuery.queryKey)?.dataUpdatedAt,
  })
  /**
   * The identities of the incidents that the user has hidden. A later incident of the same channel is shown
   * again.
   */
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set())
  const shown = data?.incidents.filter((one) => !hidden.has(identityOf(one))) ?? []
  const refused = data?.refused ?? undefined
  if (shown.length === 0 && !refused) return null
  return (
    <section aria-label={t.title} className={classes['incidents']}>
      {refused && (
        <FoldedAlert state={t.refusedFile}>
          {t.refusedConfiguration(refused.message, refused.mistakes)}
        </FoldedAlert>
      )}
      {shown.map((one) => (
        <OneIncident
          key={one.channel_id}
          incident={one}
          onHide={() => setHidden(new Set([...hidden, identityOf(one)]))}
        />
      ))}
    </section>
  )
}

function identityOf({ channel_id, since }: ChannelIncident): string {
  return `${channel_id} ${since}`
}

function OneIncident({
  incident,
  onHide,
}: {
  readonly incident: ChannelIncident
  readonly onHide: () => void
}) {
  const { incidents: t, channels, common, failures, tag } = useTexts()
  const space = common.betweenSentences
  const { percent, count, timeZone } = useFormatters()
  const { channel_id, channel, condition, tried, since, calls, failed, rescued, lost, cause } = incident
  const act = useChannelActions(incident)
  const state = condition === 'probing' && !tried ? channels.toBeTried : channels.states[condition]
  const clock = new Intl.DateTimeFormat(tag, {
    timeZone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
  return (
    <FoldedAlert
      name={
        <Link to="/channels/$id" params={{ id: String(channel_id) }} title={channel}>
          {channel}
        </Link>
      }
      state={state}
      actions={
        <>
          <Button size="xs" variant="default" onClick={() => void act.drain()}>
            {channels.drain}
          </Button>
          <Button size="xs" variant="default" onClick={() => void act.disable()}>
            {common.disable}
          </Button>
          <Button
            size="xs"
            variant="default"
            title={incident.test_costs ? channels.testCosts : undefined}
            onClick={() => void act.test()}
          >
            {channels.test}
          </Button>
          <Button size="xs" variant="subtle" onClick={onHide}>
            {t.hide}
          </Button>
        </>
      }
    >
      {t.sentence(state, percent(failed / Math.max(1, calls)), clock.format(since * 1000))}
      {space}
      {t.calls(count(rescued), count(lost))}
      {space}
      {cause !== '' && t.cause(failureDescription(cause, failures))}
    </FoldedAlert>
  )
}

/** An alert with its sentence and actions; on a phone, one line that opens. */
function FoldedAlert({
  name,
  state,
  actions,
  children,
}: {
  readonly name?: ReactNode
  /** What a phone shows in place of the sentence. */
  readonly state: string
  readonly actions?: ReactNode
  readonly children: ReactNode
}) {
  const { common } = useTexts()
  const [isOpen, setIsOpen] = useState(false)
  return (
    <div className={classes['incident']} role="alert" data-open={isOpen || undefined}>
      <p>
        {name}
        <span className={classes['state']}>{state}</span>
        <span className={classes['sentence']}>{children}</span>
      </p>
      <ActionIcon
        className={classes['more']}
        aria-label={common.details}
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        {isOpen ? <IconChevronUp size={16} /> : <IconChevronDown size={16} />}
      </ActionIcon>
      {actions !== undefined && <div className={classes['actions']}>{actions}</div>}
    </div>
  )
}

/** The actions that an administrator can take on a channel in trouble; one click undoes them. */
function useChannelActions({ channel_id: id, channel: name }: ChannelIncident) {
  const texts = useTexts()
  const client = useQueryClient()
  return {
    drain: () => setChannelDraining(client, texts, { id, name }, true),
    disable: () => setChannelEnabled(client, texts, { id, name }, false),
    test: async () => {
      try {
        const { success, message, time, costs } = await testChannel(id)
        await reloadChannels(client)
        const outcome = success ? texts.channels.answered(time) : texts.channels.testFailed(message, '')
        showNotice(costs ? `${outcome} ${texts.channels.testCost}` : outcome)
      } catch (error) {
        showFailure(error, texts)
      }
    },
  }
}
