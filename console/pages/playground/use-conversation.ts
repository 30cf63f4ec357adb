import { useCallback, useRef, useState } from 'react'
import type { Answer, Exchange, Protocol, Question } from './answer.ts'
import { ask } from './ask.ts'
import { type CallSettings, requestBody } from './request-body.ts'

/** A conversation with a model, which only exists as long as the page. */
export interface Conversation {
  readonly exchanges: readonly Exchange[]
  readonly isRunning: boolean
  /** The last call; undefined before the first. */
  readonly last: Call | undefined
  readonly send: (to: Recipient, question: Question) => void
  readonly stop: () => void
  readonly clear: () => void
}

/** A call as it was sent, and as it would have been sent in the other protocol. */
export interface Call {
  readonly protocol: Protocol
  readonly bodyOf: (protocol: Protocol) => object
}

/** The key, model and settings that a question is sent with. */
export interface Recipient {
  readonly protocols: readonly Protocol[]
  readonly keyId: number
  readonly settings: CallSettings
}

/** The state of a conversation and its running calls. */
export function useConversation(onEnd: () => void): Conversation {
  const [exchanges, setExchanges] = useState<readonly Exchange[]>([])
  const [running, setRunning] = useState<AbortController>()
  const [last, setLast] = useState<Call>()
  const lastId = useRef(0)
  const ended = useRef(onEnd)
  ended.current = onEnd
  const send = ({ protocols, keyId, settings }: Recipient, question: Question): void => {
    if (running) return
    const stopping = new AbortController()
    const id = (lastId.current += 1)
    setRunning(stopping)
    setExchanges([...exchanges, { id, question, answers: [] }])
    const bodyOf = (protocol: Protocol): object => requestBody(protocol, settings, exchanges, question)
    setLast({ protocol: protocols[0] ?? 'chat', bodyOf })
    const asked = protocols.map((protocol, place) =>
      ask(
        {
          protocol,
          model: settings.model,
          keyId,
          body: bodyOf(protocol),
          signal: stopping.signal,
        },
        (answer) =>
          setExchanges((all) => all.map((one) => (one.id === id ? placed(one, place, answer) : one))),
      ),
    )
    void Promise.all(asked).then(() => {
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
