import { allowedModels } from '../../api/allowed-models.ts'
import { Button, Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import {
  type ApiKey,
  changeKey,
  isLimitedByOperator,
  keyQuery,
  keysStoppedByBudgetQuery,
} from '../../api/keys.ts'
import { type ManagedUser, userQuery } from '../../api/users.ts'
import { AddAmountDialog } from '../../components/add-amount-dialog.tsx'
import { QueryResult } from '../../components/query-result.tsx'
import { ObjectNotFound } from '../../components/object-not-found.tsx'
import { KeyState } from '../../components/key-state.tsx'
import { showFailure } from '../../components/notify.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { useRaiseBudgetDialog } from '../../components/use-raise-budget-dialog.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { KeySettings } from './key-settings.tsx'
import { KeyUsage } from './key-usage.tsx'
import { SnippetTabs } from '../../components/snippet-tabs.tsx'
import { useKeyChanges } from '../../components/use-key-changes.ts'
import { useRevealedKey } from './use-revealed-key.ts'

/** The page of one key: its cost, its use and its settings. */
export function KeyPage() {
  const { id = '' } = useParams({ strict: false })
  const { keys } = useTexts()
  const { profile } = useSignedInAccount()
  return (
    <QueryResult
      query={useQuery(keyQuery(profile.id, Number(id)))}
      gone={<ObjectNotFound text={keys.gone} to="/keys" label={keys.back} />}
    >
      {(key) => <Key apiKey={key} />}
    </QueryResult>
  )
}

/** The page of a key of another user, for administrators. It cannot be revealed there. */
export function UserKeyPage() {
  const { id = '', key = '' } = useParams({ strict: false })
  const { keys } = useTexts()
  const { profile } = useSignedInAccount()
  const owner = useQuery(userQuery(profile.id, Number(id)))
  const gone = <ObjectNotFound text={keys.goneOfUser} to="/user-keys" label={keys.backToAll} />
  return (
    <QueryResult query={useQuery(keyQuery(profile.id, Number(key), Number(id)))} gone={gone}>
      {(found) => (
        <QueryResult query={owner} gone={gone}>
          {(user) => <Key apiKey={found} owner={user} />}
        </QueryResult>
      )}
    </QueryResult>
  )
}

function Key({ apiKey, owner }: { readonly apiKey: ApiKey; readonly owner?: ManagedUser }) {
  const texts = useTexts()
  const { keys, limits } = texts
  const { profile } = useSignedInAccount()
  const { reload } = useKeyChanges(owner?.id)
  const { data: stopped = [] } = useQuery(keysStoppedByBudgetQuery(profile.id, [apiKey], owner?.id))
  const raise = useRaiseBudgetDialog()
  const { id, name, budget } = apiKey
  const [{ tab = 'usage' }, setSearch] = useSearchState()
  return (
    <>
      <PageHead
        title={apiKey.name}
        above={
          owner ? (
            <Link to="/users/$id" params={{ id: String(owner.id) }} search={{ tab: 'keys' }}>
              {keys.keysOf(owner.username)}
            </Link>
          ) : (
            <Link to="/keys">{keys.back}</Link>
          )
        }
        beside={<KeyState status={apiKey.status} isStopped={stopped.includes(id)} />}
      >
        {budget > 0 && (owner || !isLimitedByOperator(profile.role, apiKey)) && (
          <Button
            variant="default"
            onClick={() =>
              raise.open(name, apiKey, (to, version) =>
                changeKey(id, { budget: to, version }, owner?.id).finally(reload),
              )
            }
          >
            {limits.raise}
          </Button>
        )}
      </PageHead>
      <Tabs value={tab} onChange={(next) => setSearch({ tab: next ?? undefined })}>
        <Tabs.List mb="lg">
          <Tabs.Tab value="usage">{keys.usage}</Tabs.Tab>
          {!owner && <Tabs.Tab value="snippets">{keys.snippets}</Tabs.Tab>}
          <Tabs.Tab value="settings">{keys.settings}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="usage">
          <KeyUsage apiKey={apiKey} owner={owner} />
        </Tabs.Panel>
        {!owner && (
          <Tabs.Panel value="snippets">
            <KeySnippets apiKey={apiKey} />
          </Tabs.Panel>
        )}
        <Tabs.Panel value="settings">
          <KeySettings key={apiKey.id} apiKey={apiKey} owner={owner} />
        </Tabs.Panel>
      </Tabs>
      <AddAmountDialog {...raise.dialog} />
    </>
  )
}

function KeySnippets({ apiKey }: { readonly apiKey: ApiKey }) {
  const texts = useTexts()
  const [revealed, { reveal }] = useRevealedKey()
  const [hasFailed, setHasFailed] = useState(false)
  const limited = allowedModels(apiKey) ?? []
  return (
    <>
      <SnippetTabs
        limitedTo={limited}
        insertedKey={revealed?.key}
        onInsert={
          hasFailed
            ? undefined
            : () =>
                void reveal(apiKey.id).catch((error: unknown) => {
                  setHasFailed(true)
                  showFailure(error, texts)
                })
        }
      />
      {revealed && <p role="status">{texts.keys.hidesIn}</p>}
    </>
  )
}
