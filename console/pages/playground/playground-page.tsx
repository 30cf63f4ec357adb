import { Button } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { IconCode, IconTrash } from '@tabler/icons-react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { type ApiKey, allKeysQuery } from '../../api/keys.ts'
import { modelsQuery, type PricedModel } from '../../api/models.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { type SearchState, useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { COMPARED_PROTOCOLS, type Question, type ModelAndProtocol } from './answer.ts'
import { CallInputs } from './call-inputs.tsx'
import { CodeDialog } from './code-dialog.tsx'
import { Composer } from './composer.tsx'
import { callableModels, mediaEndpointOf, usableKeys } from './callable-models.ts'
import { readSavedConversation, useSavedConversation } from './saved-conversation.ts'
import { MAX_MODELS, ModelChoices } from './model-choices.tsx'
import classes from './playground-page.module.css'
import { requestBody } from './request-body.ts'
import type { CallSettings } from './playground-request.ts'
import { ConversationView } from './conversation-view.tsx'
import type { CallFormValues } from './call-form-values.ts'
import { parseToolsJson } from './tools-json.ts'
import { type SentPlaygroundCall, useConversation } from './use-conversation.ts'
import { useScrollFollowing } from './use-scroll-following.ts'

/** The minimum width of the window at which the settings are beside the conversation. */
const WIDE = '(width >= 900px)'

/**
 * A page to try models with one of the account's own keys. The conversation is stored only in this browser
 * tab.
 */
export function PlaygroundPage() {
  const { profile } = useSignedInAccount()
  const keys = useQuery(allKeysQuery(profile.id))
  const models = useQuery(modelsQuery(profile.id))
  return (
    <QueryResult query={keys}>
      {(items) => (
        <QueryResult query={models}>
          {(all) =>
            usableKeys(items).length === 0 || all.length === 0 ? (
              <NothingToCall hasModel={all.length > 0} />
            ) : (
              <Playground keys={usableKeys(items)} models={all} />
            )
          }
        </QueryResult>
      )}
    </QueryResult>
  )
}

function NothingToCall({ hasModel }: { readonly hasModel: boolean }) {
  const { playground } = useTexts()
  const { isRoot } = useSignedInAccount()
  return (
    <>
      <PageHead title={playground.title} />
      <EmptyState text={hasModel ? playground.noKey : playground.noModel}>
        {hasModel ? (
          <Button component={Link} to="/keys" search={{ new: '1' } as never}>
            {playground.createKey}
          </Button>
        ) : (
          isRoot && (
            <Button component={Link} to="/channels/new">
              {playground.addChannel}
            </Button>
          )
        )}
      </EmptyState>
    </>
  )
}

function Playground({
  keys,
  models,
}: {
  readonly keys: readonly ApiKey[]
  readonly models: readonly PricedModel[]
}) {
  const { playground } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const [search, setSearch] = useSearchState()
  const [saved] = useState(() => readSavedConversation(profile.id))
  const [typed, setTyped] = useState<CallFormValues>(saved.typed)
  const [draft, setDraft] = useState(search['hello'] === undefined ? saved.draft : playground.hello)
  const [isCodeOpen, setIsCodeOpen] = useState(false)
  const isWide = useMediaQuery(WIDE, undefined, { getInitialValueInEffect: false })
  const [isOpen, setIsOpen] = useState(isWide)
  const following = useScrollFollowing()
  const key = keys.find(({ id }) => String(id) === search['key']) ?? keys[0]
  const callable = callableModels(models, key)
  const chosen = chosenModels(callable, search)
  const conversation = useConversation(saved.exchanges, () => {
    for (const name of ['keys', 'calls', 'call-sums'])
      void client.invalidateQueries({ queryKey: [profile.id, name] })
  })
  const { exchanges } = conversation
  useSavedConversation(profile.id, { exchanges, typed, draft })
  const tools = parseToolsJson(typed.tools)
  const settings: CallSettings = { ...settingsOf(typed), tools: tools ?? [] }
  const targets = targetsOf(chosen, callable, typed)
  const media = new Set(targets.map(({ protocol }) => protocol))
  const send = (question: Question, to: readonly ModelAndProtocol[] = targets): void => {
    if (!key) return
    following.follow()
    conversation.send({ targets: to, keyId: key.id, settings }, question)
  }
  const next: SentPlaygroundCall = {
    ...(targets[0] ?? { model: '', protocol: 'chat' }),
    isStream: settings.stream,
    bodyOf: (target) => requestBody(target, settings, exchanges, { text: draft, images: [], results: [] }),
  }
  return (
    <div className={classes['page']} data-fills-window>
      <PlaygroundHead
        onCode={() => setIsCodeOpen(true)}
        onClear={exchanges.length === 0 ? undefined : conversation.clear}
      />
      <div className={classes['frame']} data-open={isOpen || undefined}>
        <div className={classes['talk']}>
          <ModelChoices
            models={callable}
            chosen={chosen}
            onChoose={(names) => setSearch(searchOf(names))}
            isOpen={isOpen}
            onOpen={setIsOpen}
          />
          <ConversationView
            exchanges={exchanges}
            isRunning={conversation.isRunning}
            following={following}
            onResults={(results, { model, protocol }) =>
              send({ text: '', images: [], results }, [{ model, protocol }])
            }
          />
          <Composer
            draft={draft}
            onDraft={setDraft}
            hint={media.has('embeddings') ? playground.textALine : undefined}
            canSend={targets.length > 0 && tools !== undefined}
            isRunning={conversation.isRunning}
            onSend={(images) => {
              send({ text: draft, images, results: [] })
              setDraft('')
            }}
            onStop={conversation.stop}
          />
        </div>
        {isOpen && (
          <CallInputs
            keys={keys}
            keyId={key?.id}
            onKey={(id) => setSearch({ key: id, ...searchOf(chosen) })}
            typed={typed}
            onType={(changes) => setTyped({ ...typed, ...changes })}
            areToolsWrong={tools === undefined}
            media={media}
          />
        )}
      </div>
      <CodeDialog
        opened={isCodeOpen}
        onClose={() => setIsCodeOpen(false)}
        // Until the next message is typed, the example code repeats the last call.
        call={draft === '' ? (conversation.last ?? next) : next}
      />
    </div>
  )
}

function PlaygroundHead({
  onCode,
  onClear,
}: {
  readonly onCode: () => void
  readonly onClear: (() => void) | undefined
}) {
  const { playground } = useTexts()
  return (
    <PageHead title={playground.title}>
      <Button variant="default" leftSection={<IconCode size={16} aria-hidden />} onClick={onCode}>
        {playground.viewCode}
      </Button>
      <Button
        variant="default"
        leftSection={<IconTrash size={16} aria-hidden />}
        disabled={onClear === undefined}
        onClick={onClear}
      >
        {playground.clear}
      </Button>
    </PageHead>
  )
}

/** The query parameters that contain the chosen models. */
const MODEL_FIELDS = Array.from({ length: MAX_MODELS }, (_, place) =>
  place === 0 ? 'model' : `model${place + 1}`,
)

/**
 * The models in the page's URL that the key may call; if there are none, the first model that the key may
 * call.
 */
function chosenModels(callable: readonly PricedModel[], search: SearchState): readonly string[] {
  const named = new Set(MODEL_FIELDS.map((field) => search[field]))
  const known = [...named].filter((name) => name !== undefined && callable.some((one) => one.name === name))
  const chosen = known.length > 0 ? known : [callable[0]?.name]
  return chosen.filter((name) => name !== undefined)
}

function searchOf(names: readonly string[]): SearchState {
  return Object.fromEntries(MODEL_FIELDS.map((field, place) => [field, names[place]]))
}

function targetsOf(
  models: readonly string[],
  callable: readonly PricedModel[],
  { protocol }: CallFormValues,
): readonly ModelAndProtocol[] {
  const protocols = protocol === 'both' ? COMPARED_PROTOCOLS : [protocol]
  return models.flatMap((model): readonly ModelAndProtocol[] => {
    const medium = callable.filter(({ name }) => name === model).map(mediaEndpointOf)[0]
    const calls: readonly ModelAndProtocol['protocol'][] = medium ? [medium] : protocols
    return calls.map((one) => ({ model, protocol: one }))
  })
}

function settingsOf(typed: CallFormValues): Omit<CallSettings, 'tools'> {
  const number = (text: string): number | undefined => (text.trim() === '' ? undefined : Number(text))
  return {
    system: typed.system,
    thinking: typed.thinking,
    temperature: number(typed.temperature),
    topP: number(typed.topP),
    maxTokens: number(typed.maxTokens),
    stream: typed.stream,
    voice: typed.voice.trim() || undefined,
    size: typed.size.trim() || undefined,
  }
}
