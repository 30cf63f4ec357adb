import { Button, Stack, Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { changeUser, type ManagedUser, userQuery } from '../../api/users.ts'
import { AddAmountDialog } from '../../components/add-amount-dialog.tsx'
import { QueryResult } from '../../components/query-result.tsx'
import { ObjectNotFound } from '../../components/object-not-found.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { useRaiseBudgetDialog } from '../../components/use-raise-budget-dialog.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { UserCalls } from './user-calls.tsx'
import { UserKeys } from './user-keys.tsx'
import { UserProfile } from './user-profile.tsx'
import { UserActions } from './user-actions.tsx'
import { UserIdentities } from './user-identities.tsx'
import { UserSpend, UserUsage } from './user-spend.tsx'
import { UserState } from './user-state.tsx'
import { useAddedQuota } from './use-added-quota.ts'
import { useUserChanges } from './use-user-changes.ts'

const ENABLED = 1

/** The page of one user: profile, keys, cost and calls. */
export function UserPage() {
  const { id = '' } = useParams({ strict: false })
  const { users } = useTexts()
  const { profile } = useSignedInAccount()
  return (
    <QueryResult
      query={useQuery(userQuery(profile.id, Number(id)))}
      gone={<ObjectNotFound text={users.gone} to="/users" label={users.back} />}
    >
      {(user) => <User user={user} />}
    </QueryResult>
  )
}

function User({ user }: { readonly user: ManagedUser }) {
  const { users, limits } = useTexts()
  const { profile } = useSignedInAccount()
  const [{ tab = 'profile' }, setSearch] = useSearchState()
  const raise = useRaiseBudgetDialog()
  const fund = useAddedQuota()
  const { turn, reload } = useUserChanges()
  const isEnabled = user.status === ENABLED
  return (
    <>
      <PageHead
        title={user.username}
        above={<Link to="/users">{users.back}</Link>}
        beside={<UserState status={user.status} />}
      >
        {user.role < profile.role && (
          <>
            <Button variant="default" onClick={() => void turn(user, !isEnabled)}>
              {isEnabled ? users.disableUser : users.enableUser}
            </Button>
            {user.budget > 0 && (
              <Button
                variant="default"
                onClick={() =>
                  raise.open(user.username, user, (budget, version) =>
                    changeUser(user.id, { budget, version }).finally(reload),
                  )
                }
              >
                {limits.raise}
              </Button>
            )}
            <UserActions user={user} />
            <Button onClick={() => fund.open(user)}>{users.addQuota}</Button>
          </>
        )}
      </PageHead>
      <Tabs value={tab} onChange={(next) => setSearch({ tab: next ?? undefined })}>
        <Tabs.List mb="lg">
          <Tabs.Tab value="profile">{users.profile}</Tabs.Tab>
          <Tabs.Tab value="keys">{users.keys}</Tabs.Tab>
          <Tabs.Tab value="usage">{users.usage}</Tabs.Tab>
          <Tabs.Tab value="calls">{users.calls}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="profile">
          <Stack gap="xl">
            <div>
              <UserProfile key={user.id} user={user} />
            </div>
            {user.role < profile.role && <UserIdentities user={user} />}
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="keys">
          <UserKeys user={user} />
        </Tabs.Panel>
        <Tabs.Panel value="usage">
          <UserUsage user={user} />
          <UserSpend user={user} by="model" />
          <UserSpend user={user} by="key" />
        </Tabs.Panel>
        <Tabs.Panel value="calls">
          <UserCalls user={user} />
        </Tabs.Panel>
      </Tabs>
      <AddAmountDialog {...raise.dialog} />
      <AddAmountDialog {...fund.dialog} />
    </>
  )
}
