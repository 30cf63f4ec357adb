import { ActionIcon, Button } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { NodeHealth } from '../../api/channel-health.ts'
import type { Channel, ChannelTest } from '../../api/channels.ts'
import { setChannelDraining, setChannelEnabled } from '../../components/channel-actions.ts'
import { ChannelState } from '../../components/channel-state.tsx'
import { ManagedMark } from '../../components/managed-mark.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import type { Column } from '../../components/data-table.tsx'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './channels-page.module.css'
import { sumOfLastHour } from './hour-sums.ts'
import { trafficSharesOf } from './traffic-shares.ts'
import { Sparkline } from './sparkline.tsx'
import { TestButton } from './test-button.tsx'

const ENABLED = 1

export function useChannelColumns(
  all: readonly Channel[],
  node: NodeHealth | undefined,
  onDelete: (channel: Channel) => void,
  onResult: (id: number, result: ChannelTest | undefined) => void,
): readonly Column<Channel>[] {
  const { channels, common } = useTexts()
  const { duration, recent, count, percent } = useFormatters()
  const healthOf = new Map(node?.items.map((health) => [health.id, health]))
  const shares = trafficSharesOf(all)
  const models = (channel: Channel): readonly string[] => channel.models.split(',').filter(Boolean)
  return [
    {
      key: 'name',
      sortField: 'name',
      label: channels.name,
      phone: 'title',
      cell: (channel) => <ChannelName channel={channel} />,
    },
    {
      key: 'state',
      sortField: 'status',
      label: channels.state,
      phone: 'value',
      cell: ({ id, status }) => (
        <span className={classes['state']}>
          <ChannelState isEnabled={status === ENABLED} health={healthOf.get(id)} at={node?.at ?? 0} />
        </span>
      ),
    },
    {
      key: 'latency',
      label: channels.latency,
      isNumber: true,
      cell: ({ id, test_time, response_time }) =>
        sumOfLastHour(healthOf.get(id)?.minutes ?? []).requests > 0 ? (
          <Sparkline minutes={healthOf.get(id)?.minutes ?? []} />
        ) : test_time > 0 ? (
          <span className={classes['latency']} title={channels.lastTest(recent(test_time))}>
            {duration(response_time)}
          </span>
        ) : (
          <span className={classes['latency']} title={channels.untested}>
            {'–'}
          </span>
        ),
    },
    {
      key: 'calls',
      label: channels.calls,
      isNumber: true,
      cell: ({ id }) => count(sumOfLastHour(healthOf.get(id)?.minutes ?? []).requests),
    },
    {
      key: 'errors',
      label: channels.errors,
      isNumber: true,
      cell: ({ id }) => {
        const { requests, failed } = sumOfLastHour(healthOf.get(id)?.minutes ?? [])
        return requests === 0 ? '–' : <span title={count(failed)}>{percent(failed / requests)}</span>
      },
    },
    {
      key: 'priority',
      sortField: 'priority',
      label: channels.settings.priority,
      isNumber: true,
      isOptional: true,
      cell: ({ priority }) => count(priority),
    },
    {
      key: 'share',
      label: channels.share,
      isNumber: true,
      isOptional: true,
      cell: ({ id }) => (shares.has(id) ? percent(shares.get(id) ?? 0) : '–'),
    },
    {
      key: 'models',
      label: channels.models,
      isOptional: true,
      cell: (channel) => (
        <span title={models(channel).join('\n')}>{channels.modelCount(models(channel).length)}</span>
      ),
    },
    {
      key: 'keys',
      label: channels.keys,
      isOptional: true,
      cell: ({ id, channel_info }) => (
        <TruncatedText
          text={channels.keyCount(
            Math.max(1, channel_info.multi_key_size),
            healthOf.get(id)?.keys.set_aside ?? 0,
          )}
        />
      ),
    },
    {
      key: 'actions',
      label: common.actions,
      isLabelHidden: true,
      phone: 'actions',
      cell: (channel) => (
        <ChannelActions
          channel={channel}
          onDelete={() => onDelete(channel)}
          onResult={(result) => onResult(channel.id, result)}
        />
      ),
    },
  ]
}

function ChannelName({ channel }: { readonly channel: Channel }) {
  return (
    <>
      <Link to="/channels/$id" params={{ id: String(channel.id) }} data-row-link>
        <TruncatedText text={channel.name} isName />
      </Link>
      {channel.managed && <ManagedMark by={channel.managed_by} />}
    </>
  )
}

function ChannelActions({
  channel,
  onDelete,
  onResult,
}: {
  readonly channel: Channel
  readonly onDelete: () => void
  readonly onResult: (result: ChannelTest | undefined) => void
}) {
  const texts = useTexts()
  const { channels, common } = texts
  const client = useQueryClient()
  const isEnabled = channel.status === ENABLED
  const toggle = isEnabled ? common.disable : common.enable
  return (
    <span className={classes['test']}>
      <TestButton channel={channel} label={channels.test} onResult={onResult} isSmall />
      <Button
        size="xs"
        variant="default"
        title={channels.drainHint}
        onClick={() => void setChannelDraining(client, texts, channel, !channel.drained)}
      >
        {channel.drained ? channels.endDrain : channels.drain}
      </Button>
      {!channel.managed && (
        <>
          <Button
            size="xs"
            variant="default"
            onClick={() => void setChannelEnabled(client, texts, channel, !isEnabled)}
          >
            {toggle}
          </Button>
          <ActionIcon aria-label={common.delete} title={common.delete} onClick={onDelete}>
            <IconTrash size={16} />
          </ActionIcon>
        </>
      )}
    </span>
  )
}
