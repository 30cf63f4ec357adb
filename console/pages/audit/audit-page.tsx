import { Button, Select } from '@mantine/core'
import { IconDownload } from '@tabler/icons-react'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { OBJECT_KINDS } from '../../../src/domain/audit.ts'
import { AUDIT_PAGE_SIZE, auditCsvUrl, auditQuery } from '../../api/audit.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import { usePreferences } from '../../components/preferences.ts'
import { type SearchState, useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { Toolbar } from '../../components/toolbar.tsx'
import { TextFilter } from '../../components/text-filter.tsx'
import { useNow } from '../../components/use-now.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { auditFilterOf, isAuditFiltered, AUDIT_PERIODS, auditPeriodOf } from './audit-filter.ts'
import { useAuditColumns } from './use-audit-columns.tsx'

/** The audit log: what was done and by whom, newest first. */
export function AuditPage() {
  const { audit, common } = useTexts()
  const { profile } = useSignedInAccount()
  const { timeZone } = usePreferences()
  const [search, setSearch] = useSearchState()
  const filter = auditFilterOf(search, useNow(), timeZone)
  const page = Number(search['p'] ?? '1')
  const query = useQuery({ ...auditQuery(profile.id, filter, page), placeholderData: keepPreviousData })
  const columns = useAuditColumns()
  const change = (changes: SearchState): void => setSearch({ ...changes, p: undefined })
  const clear = (): void => change({ actor: undefined, kind: undefined, object: undefined })
  return (
    <>
      <PageHead title={audit.title}>
        <Button
          component="a"
          variant="default"
          href={auditCsvUrl(filter)}
          download
          leftSection={<IconDownload size={16} aria-hidden />}
        >
          {audit.csv}
        </Button>
      </PageHead>
      <Filters search={search} onChange={change} onClear={clear} />
      <PagedTable
        label={audit.table}
        columns={columns}
        query={query}
        pageSize={AUDIT_PAGE_SIZE}
        isByTime
        empty={
          <EmptyState text={isAuditFiltered(search) ? audit.emptyFiltered : audit.empty}>
            {isAuditFiltered(search) && (
              <Button variant="default" onClick={clear}>
                {common.clearFilters}
              </Button>
            )}
          </EmptyState>
        }
      />
      <p>
        <small>{common.zone(timeZone)}</small>
      </p>
    </>
  )
}

function Filters({
  search,
  onChange,
  onClear,
}: {
  readonly search: SearchState
  readonly onChange: (changes: SearchState) => void
  readonly onClear: () => void
}) {
  const { audit, common } = useTexts()
  return (
    <Toolbar>
      <Select
        label={audit.period}
        allowDeselect={false}
        data={AUDIT_PERIODS.map((value) => ({ value, label: audit.periods[value] }))}
        value={auditPeriodOf(search)}
        onChange={(period) => onChange({ period: period ?? undefined })}
      />
      <Select
        label={audit.kind}
        clearable
        placeholder={audit.allKinds}
        data={OBJECT_KINDS.map((value) => ({ value, label: audit.kinds[value] }))}
        value={search['kind'] ?? null}
        onChange={(kind) => onChange({ kind: kind ?? undefined })}
      />
      <TextFilter
        label={audit.actor}
        value={search['actor'] ?? ''}
        isFirst
        onChange={(actor) => onChange({ actor })}
      />
      <TextFilter
        label={audit.object}
        value={search['object'] ?? ''}
        onChange={(object) => onChange({ object })}
      />
      {isAuditFiltered(search) && (
        <Button variant="subtle" onClick={onClear}>
          {common.clearFilters}
        </Button>
      )}
    </Toolbar>
  )
}
