import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { deleteGuard, type Guard, guardsQuery } from '../../api/guards.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { DataTable } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { showNotice } from '../../components/notify.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { PageHint } from '../../components/page-section.tsx'
import { QueryResult } from '../../components/query-result.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { NewGuard } from './guard-page.tsx'
import { TryGuardsOnText } from './try-guards-on-text.tsx'
import { useGuardColumns } from './use-guard-columns.tsx'

/**
 * The guards with what they have decided in the last 24 hours, or the page for a new guard if the page's URL
 * has the parameter `new`.
 */
export function GuardsPage() {
  const [search] = useSearchState()
  // `new` is a parameter and not a path, because `/guards/new` is the page of a guard called `new`.
  return search['new'] === undefined ? <AllGuards /> : <NewGuard />
}

function AllGuards() {
  const { guards: t, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const [toDelete, setToDelete] = useState<Guard>()
  const columns = useGuardColumns(setToDelete)
  const addButton = (
    <Button
      component={Link}
      to="/guards"
      search={{ new: '1' } as never}
      data-new
      leftSection={<IconPlus size={16} aria-hidden />}
    >
      {t.add}
    </Button>
  )
  return (
    <>
      <PageHead title={t.title}>{addButton}</PageHead>
      <QueryResult query={useQuery(guardsQuery(profile.id))}>
        {(all) =>
          all.length === 0 ? (
            <EmptyState text={t.empty} />
          ) : (
            <>
              <DataTable label={t.title} columns={columns} rows={all} keyOf={({ name }) => name} areOpened />
              <PageHint>{t.lastDay}</PageHint>
              <TryGuardsOnText given={() => ({})} />
            </>
          )
        }
      </QueryResult>
      <ConfirmDialog
        opened={toDelete !== undefined}
        title={t.deleteTitle}
        text={toDelete ? t.deleteText(toDelete.name) : ''}
        label={common.delete}
        onConfirm={async () => {
          if (!toDelete) return
          await deleteGuard(toDelete.name)
          await client.invalidateQueries({ queryKey: [profile.id, 'guards'] })
          showNotice(t.deleted(toDelete.name))
        }}
        onClose={() => setToDelete(undefined)}
      />
    </>
  )
}
