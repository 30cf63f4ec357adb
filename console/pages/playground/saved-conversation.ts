import { useEffect, useRef } from 'react'
import { writeTabStorage, readTabStorage } from '../../components/tab-storage.ts'
import type { Answer, Exchange } from './answer.ts'
import { EMPTY_CALL_FORM_VALUES, type CallFormValues } from './call-form-values.ts'

/** What is kept when the tab is reloaded: the conversation, the settings and the unsent message. */
export interface SavedConversation {
  readonly exchanges: readonly Exchange[]
  readonly typed: CallFormValues
  readonly draft: string
}

const NAME = 'playground'
/**
 * Milliseconds after the last change until the conversation is stored: while an answer arrives, it changes
 * with each event.
 */
const KEEP_AFTER_MS = 300
const NOTHING: SavedConversation = { exchanges: [], typed: EMPTY_CALL_FORM_VALUES, draft: '' }

/** The stored conversation of this account in this tab. */
export function readSavedConversation(userId: number): SavedConversation {
  try {
    const saved = JSON.parse(readTabStorage(NAME)) as SavedConversation & { userId: number }
    if (saved.userId !== userId) return NOTHING
    return { ...saved, typed: { ...EMPTY_CALL_FORM_VALUES, ...saved.typed } }
  } catch {
    return NOTHING
  }
}

/** Stores a conversation after each change, and when the user leaves the page. */
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

/** Stores a conversation; without its pictures if the browser has no space for them. */
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

/**
 * A response in the form in which it is stored: its call counts as ended. Events and sound are not stored.
 */
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
