import { Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { allowedModels, type ApiKey, keyQuery } from '../../api/keys.ts'
import { AnswerOf } from '../../components/answer-of.tsx'
import { sayFailure } from '../../components/notify.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedIn } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { KeySettings } from './key-settings.tsx'
import { KeyState } from './key-state.tsx'
import { KeyUsage } from './key-usage.tsx'
import { SnippetTabs } from './snippet-tabs.tsx'
import { useRevealedKey } from './use-revealed-key.ts'

/** The page of one key: its cost, its use and its settings. */
export function KeyPage() {
  const { id = '' } = useParams({ strict: false })
  const { profile } = useSignedIn()
  return (
    <AnswerOf query={useQuery(keyQuery(profile.id, Number(id)))}>{(key) => <Key apiKey={key} />}</AnswerOf>
  )
}

function Key({ apiKey }: { readonly apiKey: ApiKey }) {
  const texts = useTexts()
  const { keys } = texts
  const [{ tab = 'usage' }, setSearch] = useSearchState()
  return (
    <>
      <PageHead
        title={apiKey.name}
        above={<Link to="/keys">{keys.back}</Link>}
        beside={<KeyState status={apiKey.status} />}
      />
      <Tabs value={tab} onChange={(next) => setSearch({ tab: next ?? undefined })}>
        <Tabs.List mb="lg">
          <Tabs.Tab value="usage">{keys.usage}</Tabs.Tab>
          <Tabs.Tab value="snippets">{keys.snippets}</Tabs.Tab>
          <Tabs.Tab value="settings">{keys.settings}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="usage">
          <KeyUsage apiKey={apiKey} />
        </Tabs.Panel>
        <Tabs.Panel value="snippets">
          <KeySnippets apiKey={apiKey} />
        </Tabs.Panel>
        <Tabs.Panel value="settings">
          <KeySettings key={apiKey.id} apiKey={apiKey} />
        </Tabs.Panel>
      </Tabs>
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
                  sayFailure(error, texts)
                })
        }
      />
      {revealed && <p role="status">{texts.keys.hidesIn}</p>}
    </>
  )
}
