import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { deleteMcpEntry, mcpServersQuery, mcpToolsetsQuery } from '../../api/tools.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { DataTable } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { showNotice } from '../../components/notify.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { PageHint, PageSection } from '../../components/page-section.tsx'
import { QueryResult } from '../../components/query-result.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { ApprovalDialog } from './approval-dialog.tsx'
import { ServerDialog } from './server-dialog.tsx'
import { ToolsetDialog } from './toolset-dialog.tsx'
import { type ToDelete, useServerColumns, useToolColumns, useToolsetColumns } from './tool-columns.tsx'

/** MCP servers with their state, their tools with prices and approvals, and the toolsets. */
export function ToolsPage() {
  const { tools: t, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const [search, setSearch] = useSearchState()
  const [toDelete, setToDelete] = useState<ToDelete>()
  const close = () => setSearch({ server: undefined, toolset: undefined, review: undefined, new: undefined })
  return (
    <>
      <PageHead title={t.title}>
        <Button
          data-new
          leftSection={<IconPlus size={16} aria-hidden />}
          onClick={() => setSearch({ new: 'server' })}
        >
          {t.addServer}
        </Button>
        <Button variant="default" onClick={() => setSearch({ new: 'toolset' })}>
          {t.addToolset}
        </Button>
      </PageHead>
      <PageHint>{t.hint}</PageHint>
      <Servers onDelete={setToDelete} onClose={close} />
      <Toolsets onDelete={setToDelete} onClose={close} />
      <ConfirmDialog
        opened={toDelete !== undefined}
        title={t.deleteTitle}
        text={toDelete ? t.deleteText(toDelete.name) : ''}
        label={common.delete}
        onConfirm={async () => {
          if (!toDelete) return
          await deleteMcpEntry(toDelete.list, toDelete.name)
          await client.invalidateQueries({ queryKey: [profile.id, 'mcp'] })
          showNotice(t.deleted(toDelete.name))
        }}
        onClose={() => setToDelete(undefined)}
      />
      {search['new'] === 'server' && <ServerDialog server={undefined} onClose={close} />}
      {search['new'] === 'toolset' && <ToolsetDialog toolset={undefined} onClose={close} />}
    </>
  )
}

interface PartProps {
  readonly onDelete: (entry: ToDelete) => void
  readonly onClose: () => void
}

function Servers({ onDelete, onClose }: PartProps) {
  const { tools: t } = useTexts()
  const { profile } = useSignedInAccount()
  const [{ server, review }] = useSearchState()
  const query = useQuery(mcpServersQuery(profile.id))
  const serverColumns = useServerColumns(query.data?.tools ?? [], onDelete)
  const toolColumns = useToolColumns(query.data?.servers ?? [])
  return (
    <QueryResult query={query}>
      {({ servers, tools }) => {
        if (servers.length === 0) return <EmptyState text={t.empty} />
        const edited = servers.find(({ name }) => name === server)
        const reviewed = tools.find((one) => `${one.server}_${one.tool}` === review)
        return (
          <>
            <PageSection title={t.servers}>
              <DataTable
                label={t.servers}
                columns={serverColumns}
                rows={servers}
                keyOf={({ name }) => name}
              />
            </PageSection>
            <PageSection title={t.tools} hint={t.toolsHint}>
              <DataTable
                label={t.tools}
                columns={toolColumns}
                rows={tools}
                keyOf={(one) => `${one.server}_${one.tool}`}
              />
            </PageSection>
            {edited && <ServerDialog key={edited.name} server={edited} onClose={onClose} />}
            {reviewed && <ApprovalDialog tool={reviewed} onClose={onClose} />}
          </>
        )
      }}
    </QueryResult>
  )
}

function Toolsets({ onDelete, onClose }: PartProps) {
  const { tools: t } = useTexts()
  const { profile } = useSignedInAccount()
  const [{ toolset }] = useSearchState()
  const columns = useToolsetColumns(onDelete)
  return (
    <PageSection title={t.toolsets} hint={t.toolsetsHint}>
      <QueryResult query={useQuery(mcpToolsetsQuery(profile.id))}>
        {(all) => {
          const edited = all.find(({ name }) => name === toolset)
          return (
            <>
              {all.length > 0 && (
                <DataTable label={t.toolsets} columns={columns} rows={all} keyOf={({ name }) => name} />
              )}
              {edited && <ToolsetDialog key={edited.name} toolset={edited} onClose={onClose} />}
            </>
          )
        }}
      </QueryResult>
    </PageSection>
  )
}
