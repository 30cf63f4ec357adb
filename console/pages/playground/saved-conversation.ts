import { useEffect, useRef } from 'react'
import { writeTabStorage, readTabStorage } from '../../components/tab-storage.ts'
import type { Answer, Exchange } from './answer.ts'
import { NO_TYPED_CALL, type TypedCall } from './typed-call.ts'

/** What a reload of the tab keeps: the conversation, the settings and the message that is being written. */
export interface SavedConversation {
  readonly exchanges: readonly Exchange[]
  readonly typed: TypedCall
  readonly draft: string
}

const NAME = 'playground'
/** Milliseconds after a change; answers change with each event. */
const KEEP_AFTER_MS = 300
const NOTHING: SavedConversation = { exchanges: [], typed: NO_TYPED_CALL, draft: '' }

/** The conversation that this account has in this tab. */
export function readSavedConversation(userId: number): SavedConversation {
  try {
    const saved = JSON.parse(readTabStorage(NAME)) as SavedConversation & { userId: number }
    if (saved.userId !== userId) return NOTHING
    return { ...saved, typed: { ...NO_TYPED_CALL, ...saved.typed } }
  } catch {
    return NOTHING
  }
}

/** Keeps a conversation while it changes, and when the page is left. */
export function useSavedConversation(userId: number, { exchanges, typed, draft }: SavedConversation): void {
  const latest = useRef<SavedConversation>(NOTHING)
  latest.current = { exchanges, typed, draft }
  useEffect(() => {
    const timer = setTimeout(() => keepConversation(userId, latest.current), KEEP_AFTER_MS)
    return () => clearTimeout(timer)
  }, [userId, exchanges, typed, draft])
  useEffect(() => {
    const keep = (): void => keepConversation(userId, latest.current)
    addEventListener('pagehide', keep)
    return () => {
      removeEventListener('pagehide', keep)
      keep()
    }
  }, [userId])
}

/** The pictures are left out if the browser has no space for them. */
function keepConversation(userId: number, { exchanges, typed, draft }: SavedConversation): void {
  const saved = exchanges.map(({ answers, ...exchange }) => ({ ...exchange, answers: answers.map(ended) }))
  const withoutImages = saved.map((one) => ({
    ...one,
    question: { ...one.question, images: [] },
    answers: one.answers.map(withoutPictures),
  }))
  if (!stored({ userId, exchanges: saved, typed, draft }))
    stored({ userId, exchanges: withoutImages, typed, draft })
}

/** A response as it is shown after a reload, which ends its call. Events and sound are not stored. */
function ended(answer: Answer): Answer {
  const { audio: _, ...content } = answer.content
  return { ...answer, content, raw: [], state: answer.state === 'running' ? 'stopped' : answer.state }
}

function withoutPictures(answer: Answer): Answer {
  const { pictures: _, ...content } = answer.content
  return { ...answer, content }
}

function stored(value: object): boolean {
  return writeTabStorage(NAME, JSON.stringify(value))
}
