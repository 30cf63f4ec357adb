import { useCallback, useEffect, useRef, useState } from 'react'
import {
  type Answer,
  type Exchange,
  isConversationProtocol,
  type Question,
  type ModelAndProtocol,
} from './answer.ts'
import { callModel } from './call-model.ts'
import { requestBody } from './request-body.ts'
import type { CallSettings } from './playground-request.ts'

/** A conversation with one model, or with several that get the same questions. */
export interface PlaygroundConversation {
  readonly exchanges: readonly Exchange[]
  readonly isRunning: boolean
  /** The last call; undefined before the first. */
  readonly last: SentPlaygroundCall | undefined
  readonly send: (to: QuestionCallOptions, question: Question) => void
  readonly stop: () => void
  readonly clear: () => void
}

/** A call as it was sent; `bodyOf` returns the body that it would have for another model and protocol. */
export interface SentPlaygroundCall extends ModelAndProtocol {
  readonly isStream: boolean
  readonly bodyOf: (target: ModelAndProtocol) => object
}

/** The key, models and settings that a question is sent with. */
export interface QuestionCallOptions {
  readonly targets: readonly ModelAndProtocol[]
  readonly keyId: number
  readonly settings: CallSettings
}

/** The state of a conversation that begins with the exchanges `before`, and of its running calls. */
export function useConversation(before: readonly Exchange[], onEnd: () => void): PlaygroundConversation {
  const [exchanges, setExchanges] = useState(before)
  const [running, setRunning] = useState<AbortController>()
  const [last, setLast] = useState<SentPlaygroundCall>()
  const lastId = useRef(before.at(-1)?.id ?? 0)
  const ended = useRef(onEnd)
  ended.current = onEnd
  // Aborts running calls when the user leaves the page: the rest of their answers would not be shown.
  useEffect(() => () => running?.abort(), [running])
  const send = ({ targets, keyId, settings }: QuestionCallOptions, question: Question): void => {
    const [first] = targets
    if (running || !first) return
    const stopping = new AbortController()
    const id = (lastId.current += 1)
    setRunning(stopping)
    setExchanges([...exchanges, { id, question, answers: [] }])
    const bodyOf = (target: ModelAndProtocol): object => requestBody(target, settings, exchanges, question)
    setLast({ ...first, isStream: settings.stream, bodyOf })
    const calls = targets.map((target, place) =>
      callModel(
        {
          ...target,
          keyId,
          body: bodyOf(target),
          isStream: settings.stream && isConversationProtocol(target.protocol),
          signal: stopping.signal,
        },
        (answer) =>
          setExchanges((all) => all.map((one) => (one.id === id ? placed(one, place, answer) : one))),
      ),
    )
    void Promise.all(calls).then(() => {
      setRunning(undefined)
      ended.current()
    })
  }
  const stop = useCallback(() => running?.abort(), [running])
  const clear = useCallback(() => {
    running?.abort()
    setExchanges([])
    setLast(undefined)
  }, [running])
  return { exchanges, isRunning: running !== undefined, last, send, stop, clear }
}

function placed(exchange: Exchange, place: number, answer: Answer): Exchange {
  const answers = [...exchange.answers]
  answers[place] = answer
  return { ...exchange, answers }
}
