import { Button } from '@mantine/core'
import { IconCode, IconTrash } from '@tabler/icons-react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type ApiKey, keysQuery } from '../../api/keys.ts'
import { modelsQuery, type PricedModel } from '../../api/models.ts'
import { AnswerOf } from '../../components/answer-of.tsx'
import { Empty } from '../../components/empty.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedIn } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { type Protocol, PROTOCOLS, type Question } from './answer.ts'
import { CallInputs } from './call-inputs.tsx'
import { CodeDialog } from './code-dialog.tsx'
import { Composer } from './composer.tsx'
import { callableModels, usableKeys } from './callable-models.ts'
import { ExchangeView } from './exchange-view.tsx'
import classes from './playground-page.module.css'
import { type CallSettings, requestBody } from './request-body.ts'
import { NO_TYPED_CALL, type TypedCall } from './typed-call.ts'
import { toolsIn } from './tools-json.ts'
import { type Call, useConversation } from './use-conversation.ts'

/** A page to try models with one of the account's own keys. The conversation only exists in this page. */
export function PlaygroundPage() {
  const { playground } = useTexts()
  const { profile } = useSignedIn()
  const keys = useQuery(keysQuery(profile.id, 1, ''))
  const models = useQuery(modelsQuery(profile.id))
  return (
    <AnswerOf query={keys}>
      {({ items }) => (
        <AnswerOf query={models}>
          {(all) =>
            usableKeys(items).length === 0 || all.length === 0 ? (
              <>
                <PageHead title={playground.title} />
                <Empty text={all.length === 0 ? playground.noModel : playground.noKey} />
              </>
            ) : (
              <Playground keys={usableKeys(items)} models={all} />
            )
          }
        </AnswerOf>
      )}
    </AnswerOf>
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
  const { profile } = useSignedIn()
  const client = useQueryClient()
  const [search, setSearch] = useSearchState()
  const [typed, setTyped] = useState<TypedCall>(NO_TYPED_CALL)
  const [draft, setDraft] = useState(search['hello'] === undefined ? '' : playground.hello)
  const [isCodeOpen, setIsCodeOpen] = useState(false)
  const key = keys.find(({ id }) => String(id) === search['key']) ?? keys[0]
  const callable = callableModels(models, key)
  const model = callable.find(({ name }) => name === search['model']) ?? callable[0]
  const conversation = useConversation(() => {
    for (const name of ['keys', 'calls', 'call-sums'])
      void client.invalidateQueries({ queryKey: [profile.id, name] })
  })
  const tools = toolsIn(typed.tools)
  const settings: CallSettings = { ...settingsOf(typed), model: model?.name ?? '', tools: tools ?? [] }
  const protocols: readonly Protocol[] = typed.protocol === 'both' ? PROTOCOLS : [typed.protocol]
  const send = (question: Question, only: readonly Protocol[] = protocols): void => {
    if (key) conversation.send({ protocols: only, keyId: key.id, settings }, question)
  }
  const next: Call = {
    protocol: protocols[0] ?? 'chat',
    bodyOf: (protocol) =>
      requestBody(protocol, settings, conversation.exchanges, { text: draft, images: [], results: [] }),
  }
  return (
    <>
      <PageHead title={playground.title}>
        <Button
          variant="default"
          leftSection={<IconCode size={16} aria-hidden />}
          onClick={() => setIsCodeOpen(true)}
        >
          {playground.viewCode}
        </Button>
        <Button
          variant="default"
          leftSection={<IconTrash size={16} aria-hidden />}
          disabled={conversation.exchanges.length === 0}
          onClick={conversation.clear}
        >
          {playground.clear}
        </Button>
      </PageHead>
      <div className={classes['frame']}>
        <div className={classes['talk']}>
          <div role="log" aria-label={playground.conversation} className={classes['log']}>
            {conversation.exchanges.length === 0 && <p className={classes['hint']}>{playground.empty}</p>}
            {conversation.exchanges.map((exchange, place) => (
              <ExchangeView
                key={exchange.id}
                exchange={exchange}
                isLast={place === conversation.exchanges.length - 1 && !conversation.isRunning}
                onResults={(results, protocol) => send({ text: '', images: [], results }, [protocol])}
              />
            ))}
          </div>
          <Composer
            draft={draft}
            onDraft={setDraft}
            canSend={model !== undefined && tools !== undefined}
            isRunning={conversation.isRunning}
            onSend={(images) => {
              send({ text: draft, images, results: [] })
              setDraft('')
            }}
            onStop={conversation.stop}
          />
        </div>
        <CallInputs
          keys={keys}
          keyId={key?.id}
          models={callable}
          model={model?.name}
          onChoose={setSearch}
          typed={typed}
          onType={(changes) => setTyped({ ...typed, ...changes })}
          areToolsWrong={tools === undefined}
        />
      </div>
      <CodeDialog
        opened={isCodeOpen}
        onClose={() => setIsCodeOpen(false)}
        // Until the next message is typed, the code is that of the last call.
        call={draft === '' ? (conversation.last ?? next) : next}
      />
    </>
  )
}

function settingsOf(typed: TypedCall): Omit<CallSettings, 'model' | 'tools'> {
  const number = (text: string): number | undefined => (text.trim() === '' ? undefined : Number(text))
  return {
    system: typed.system,
    thinking: typed.thinking,
    temperature: number(typed.temperature),
    topP: number(typed.topP),
    maxTokens: number(typed.maxTokens),
    stream: typed.stream,
  }
}
