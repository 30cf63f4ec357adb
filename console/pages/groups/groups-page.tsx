import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Role } from '../../../src/domain/role.ts'
import { type ManagedGroup, managedGroupsQuery } from '../../api/groups.ts'
import { BudgetMeter } from '../../components/budget-meter.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { ManagedMark } from '../../components/managed-mark.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { PageHint } from '../../components/page-section.tsx'
import { QueryResult } from '../../components/query-result.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { GroupDialog } from './group-dialog.tsx'

/** All groups, for administrators; root changes them. */
export function GroupsPage() {
  const { groups } = useTexts()
  const { profile } = useSignedInAccount()
  const [{ group, new: isNew }, setSearch] = useSearchState()
  const columns = useColumns()
  return (
    <>
      <PageHead title={groups.title}>
        {profile.role >= Role.root && (
          <Button
            data-new
            leftSection={<IconPlus size={16} aria-hidden />}
            onClick={() => setSearch({ new: '1' })}
          >
            {groups.add}
          </Button>
        )}
      </PageHead>
      <PageHint>{groups.hint}</PageHint>
      <QueryResult query={useQuery(managedGroupsQuery(profile.id))}>
        {(all) => (
          <>
            <DataTable label={groups.title} columns={columns} rows={all} keyOf={(one) => one.group} />
            <GroupDialog
              key={group ?? isNew}
              group={all.find((one) => one.group === group)}
              opened={group !== undefined || isNew !== undefined}
              onClose={() => setSearch({ group: undefined, new: undefined })}
            />
          </>
        )}
      </QueryResult>
    </>
  )
}

function useColumns(): readonly Column<ManagedGroup>[] {
  const { groups, common, limits } = useTexts()
  return [
    {
      key: 'name',
      label: groups.name,
      phone: 'title',
      sortBy: ({ group }) => group,
      cell: ({ group, managed }) => (
        <>
          <Link to="/groups" search={{ group }} data-row-link>
            <TruncatedText text={group} isName />
          </Link>
          {managed && <ManagedMark by="gateway.yaml" />}
        </>
      ),
    },
    {
      key: 'members',
      label: groups.members,
      isNumber: true,
      sortBy: ({ members }) => members,
      cell: ({ members }) => members,
    },
    {
      key: 'ratio',
      label: groups.ratio,
      isNumber: true,
      sortBy: ({ ratio }) => Number(ratio),
      cell: ({ ratio }) => `×${ratio}`,
    },
    {
      key: 'open',
      label: groups.open,
      isOptional: true,
      cell: ({ open }) => (open ? groups.anyone : groups.membersAlone),
    },
    {
      key: 'models',
      label: groups.models,
      isNumber: true,
      sortBy: ({ models }) => models.length,
      cell: ({ models }) => models.length,
    },
    {
      key: 'budget',
      label: limits.budget,
      cell: ({ group, ...state }) => (state.budget > 0 ? <BudgetMeter name={group} state={state} /> : '–'),
    },
    {
      key: 'guards',
      label: groups.guards,
      isOptional: true,
      cell: ({ guards }) => (guards.length > 0 ? <TruncatedText text={guards.join(', ')} /> : common.none),
    },
  ]
}
