import { Button } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { type RunningCall, runningCallsQuery, stopCall } from '../../api/running-calls.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { showFailure, showNotice } from '../../components/notify.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** The calls under way, with their cost so far. */
export function LivePage() {
  const texts = useTexts()
  const { live } = texts
  const { profile } = useSignedInAccount()
  const { count } = useFormatters()
  const client = useQueryClient()
  const query = useQuery(runningCallsQuery(profile.id))
  const [stopping, setStopping] = useState<ReadonlySet<string>>(new Set())
  const stop = async ({ id, model_name: model, token_name: key }: RunningCall): Promise<void> => {
    setStopping((before) => new Set([...before, id]))
    try {
      await stopCall(id)
      showNotice(live.stopped(model, key))
    } catch (error) {
      showFailure(error, texts, live.notStopped(model, key))
    } finally {
      setStopping((before) => new Set([...before].filter((one) => one !== id)))
      await client.invalidateQueries({ queryKey: [profile.id, 'running'] })
    }
  }
  const columns = useColumns(query.data?.at ?? 0, stopping, (call) => void stop(call))
  return (
    <>
      <PageHead title={live.title} />
      <QueryResult query={query}>
        {({ items, total }) =>
          items.length === 0 ? (
            <EmptyState text={live.empty} />
          ) : (
            <>
              <p role="status">{live.count(total, count(total))}</p>
              <DataTable label={live.table} columns={columns} rows={items} keyOf={({ id }) => id} />
            </>
          )
        }
      </QueryResult>
    </>
  )
}

function useColumns(
  at: number,
  stopping: ReadonlySet<string>,
  onStop: (call: RunningCall) => void,
): readonly Column<RunningCall>[] {
  const { live, common } = useTexts()
  const { count, duration } = useFormatters()
  return [
    {
      key: 'started',
      label: live.started,
      phone: 'value',
      cell: ({ started_at }) => <TimeText at={started_at} isWhole />,
    },
    { key: 'model', label: live.model, phone: 'title', cell: ({ model_name }) => model_name },
    { key: 'key', label: live.key, cell: ({ token_name }) => token_name },
    {
      key: 'user',
      label: live.user,
      cell: ({ user_id, username }) => (
        <Link to="/users/$id" params={{ id: String(user_id) }}>
          {username}
        </Link>
      ),
    },
    {
      key: 'channel',
      label: live.channel,
      cell: ({ channel, attempt, state, node }) => (
        <span title={node}>
          {live.at(channel, attempt)} <small>{live.states[state]}</small>
        </span>
      ),
    },
    {
      key: 'tokens',
      label: live.tokens,
      isNumber: true,
      cell: ({ output_tokens }) => count(output_tokens),
    },
    { key: 'cost', label: live.cost, isNumber: true, cell: ({ cost }) => <MoneyText quota={cost} /> },
    {
      key: 'time',
      label: live.time,
      isNumber: true,
      cell: ({ started_at }) => duration(Math.max(0, at - started_at) * 1000),
    },
    {
      key: 'actions',
      label: common.actions,
      isLabelHidden: true,
      phone: 'actions',
      cell: (call) => (
        <Button
          variant="default"
          size="compact-sm"
          loading={stopping.has(call.id)}
          onClick={() => onStop(call)}
        >
          {live.stop}
        </Button>
      ),
    },
  ]
}
