import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { channelHealthQuery } from '../../api/channel-health.ts'
import { type Channel, channelsQuery, deleteChannel } from '../../api/channels.ts'
import { AnswerOf } from '../../parts/answer-of.tsx'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { DataTable } from '../../parts/data-table.tsx'
import { Empty } from '../../parts/empty.tsx'
import { say } from '../../parts/notify.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Pager } from '../../parts/pager.tsx'
import { useSearchState } from '../../parts/search-state.ts'
import { useSignedIn } from '../../parts/session.tsx'
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
  const columns = useChannelColumns(query.data?.items ?? [], health, setToDelete)
  return (
    <>
      <PageHead title={channels.title}>
        <Button component={Link} to="/channels/new" data-new leftSection={<IconPlus size={16} aria-hidden />}>
          {channels.add}
        </Button>
      </PageHead>
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
