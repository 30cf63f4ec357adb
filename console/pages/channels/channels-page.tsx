import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { channelHealthQuery } from '../../api/channel-health.ts'
import {
  type Channel,
  channelsQuery,
  type ChannelTest,
  deleteChannel,
  testAllChannels,
} from '../../api/channels.ts'
import { AnswerOf } from '../../parts/answer-of.tsx'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Empty } from '../../parts/empty.tsx'
import { say } from '../../parts/notify.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Pager } from '../../parts/pager.tsx'
import { Refusal } from '../../parts/refusal.tsx'
import { useSearchState } from '../../parts/search-state.ts'
import { useSignedIn } from '../../parts/session.tsx'
import { useAction } from '../../parts/use-action.ts'
import { useTexts } from '../../texts/use-texts.tsx'
import { HEALTH_MS } from './hour.ts'
import { useChannelColumns } from './use-channel-columns.tsx'

const PAGE_SIZE = 100

/** Where the gateway sends calls. */
export function ChannelsPage() {
  const { channels, common } = useTexts()
  const { profile } = useSignedIn()
  const client = useQueryClient()
  const [{ p = '1' }, setSearch] = useSearchState()
  const [toDelete, setToDelete] = useState<Channel>()
  const query = useQuery(channelsQuery(profile.id, Number(p)))
  const { data: health } = useQuery(channelHealthQuery(profile.id, HEALTH_MS))
  const [results, setResults] = useState<ReadonlyMap<number, ChannelTest>>(new Map())
  const columns = useChannelColumns(query.data?.items ?? [], health, setToDelete, {
    results,
    onResult: (id, result) => setResults((before) => withResult(before, id, result)),
  })
  const testing = useAction(async () => {
    setResults(new Map())
    setResults(await testAllChannels(query.data?.items.map(({ id }) => id) ?? []))
    await client.invalidateQueries({ queryKey: [profile.id, 'channels'] })
  })
  return (
    <>
      <PageHead title={channels.title}>
        <Button
          variant="default"
          loading={testing.isRunning}
          title={channels.testAllHint}
          onClick={() => void testing.run()}
        >
          {channels.testAll}
        </Button>
        <Button component={Link} to="/channels/new" data-new leftSection={<IconPlus size={16} aria-hidden />}>
          {channels.add}
        </Button>
      </PageHead>
      <Refusal error={testing.error} />
      <AnswerOf query={query}>
        {({ items, total }) =>
          items.length === 0 ? (
            <Empty text={channels.empty} />
          ) : (
            <>
              <DataTable label={channels.title} columns={columns} rows={items} keyOf={({ id }) => id} />
              <Pager
                page={Number(p)}
                pageSize={PAGE_SIZE}
                total={total}
                onPage={(next) => setSearch({ p: String(next) })}
              />
            </>
          )
        }
      </AnswerOf>
      <ConfirmDialog
        opened={toDelete !== undefined}
        title={channels.deleteTitle}
        text={toDelete ? channels.deleteText(toDelete.name) : ''}
        label={common.delete}
        onConfirm={async () => {
          if (!toDelete) return
          await deleteChannel(toDelete.id)
          await client.invalidateQueries({ queryKey: [profile.id, 'channels'] })
          say(channels.deleted(toDelete.name))
        }}
        onClose={() => setToDelete(undefined)}
      />
    </>
  )
}

function withResult(
  before: ReadonlyMap<number, ChannelTest>,
  id: number,
  result: ChannelTest | undefined,
): ReadonlyMap<number, ChannelTest> {
  const after = new Map(before)
  if (result) after.set(id, result)
  else after.delete(id)
  return after
}
