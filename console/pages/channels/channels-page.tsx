import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { channelHealthQuery } from '../../api/channel-health.ts'
import {
  type Channel,
  channelsQuery,
  type ChannelTest,
  deleteChannel,
  idsOfFilteredChannels,
  testAllChannels,
} from '../../api/channels.ts'
import { reloadChannels } from '../../components/channel-actions.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { DataTable } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { showNotice } from '../../components/notify.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { Pager } from '../../components/pager.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { listOrderOf, sortingOf } from '../../components/sorting.ts'
import { useAction } from '../../components/use-action.ts'
import { useLastPage } from '../../components/use-last-page.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { ChannelFilters } from './channel-filters.tsx'
import { HEALTH_INTERVAL_MS } from './hour-sums.ts'
import { TestResultLine } from './test-button.tsx'
import { useChannelColumns } from './use-channel-columns.tsx'

const PAGE_SIZE = 100

/** The list of channels that the gateway sends calls to. */
export function ChannelsPage() {
  const { channels, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const [search, setSearch] = useSearchState()
  const { p = '1', q = '', state = '' } = search
  const filter = { keyword: q, condition: state, ...listOrderOf(search) }
  const isFiltered = q !== '' || state !== ''
  const [toDelete, setToDelete] = useState<Channel>()
  const query = useQuery({
    ...channelsQuery(profile.id, Number(p), filter),
    placeholderData: keepPreviousData,
  })
  useLastPage(query, PAGE_SIZE)
  const { data: health } = useQuery(channelHealthQuery(profile.id, HEALTH_INTERVAL_MS))
  const [results, setResults] = useState<ReadonlyMap<number, ChannelTest>>(new Map())
  const onResult = (id: number, result: ChannelTest | undefined): void =>
    setResults((before) => withTestResult(before, id, result))
  const { items: shown = [], total: all = 0 } = query.data ?? {}
  // Shares of traffic are computed among all channels, so they cannot be shown for a part of the list.
  const isWhole = !isFiltered && all === shown.length
  const columns = useChannelColumns(isWhole ? shown : [], health, setToDelete, onResult)
  const testing = useAction(async () => {
    setResults(new Map())
    setResults(await testAllChannels(await idsOfFilteredChannels(filter)))
    await reloadChannels(client)
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
      <RefusalMessage error={testing.error} />
      <ChannelFilters
        keyword={q}
        condition={state}
        onFilter={(changes) => setSearch({ ...changes, p: undefined })}
      />
      <QueryResult query={query}>
        {({ items, total }) =>
          items.length === 0 ? (
            <EmptyState text={isFiltered ? channels.emptyFiltered : channels.empty}>
              {isFiltered ? (
                <Button
                  variant="default"
                  onClick={() => setSearch({ q: undefined, state: undefined, p: undefined })}
                >
                  {common.clearFilters}
                </Button>
              ) : (
                <Button component={Link} to="/channels/new">
                  {channels.add}
                </Button>
              )}
            </EmptyState>
          ) : (
            <>
              <DataTable
                label={channels.title}
                columns={columns}
                rows={items}
                keyOf={({ id }) => id}
                isStale={query.isPlaceholderData}
                sorting={sortingOf(search, setSearch)}
                detail={({ id }) => {
                  const result = results.get(id)
                  return result && <TestResultLine result={result} onClose={() => onResult(id, undefined)} />
                }}
              />
              <Pager
                page={Number(p)}
                pageSize={PAGE_SIZE}
                total={total}
                onPage={(next) => setSearch({ p: String(next) })}
              />
            </>
          )
        }
      </QueryResult>
      <ConfirmDialog
        opened={toDelete !== undefined}
        title={channels.deleteTitle}
        text={toDelete ? channels.deleteText(toDelete.name) : ''}
        label={common.delete}
        onConfirm={async () => {
          if (!toDelete) return
          await deleteChannel(toDelete.id)
          await reloadChannels(client)
          showNotice(channels.deleted(toDelete.name))
        }}
        onClose={() => setToDelete(undefined)}
      />
    </>
  )
}

function withTestResult(
  before: ReadonlyMap<number, ChannelTest>,
  id: number,
  result: ChannelTest | undefined,
): ReadonlyMap<number, ChannelTest> {
  const after = new Map(before)
  if (result) after.set(id, result)
  else after.delete(id)
  return after
}
