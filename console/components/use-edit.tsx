import { useState } from 'react'
import { ApiError } from '../api/api-error.ts'

/** The version of an object that a form is based on. */
export interface FormVersion<Present> {
  readonly version: string | undefined
  /** The present object, after a save that another user's change preceded. */
  readonly present: Present | undefined
  /** Continues from another version: that of a save, or of another user's change. */
  readonly continueFrom: (version: string | undefined) => void
  /** Whether a save was refused because of another user's change, which is then `present`. */
  readonly isOutdated: (error: unknown) => boolean
  /** Continues with the form; the decision is made at the next save. */
  readonly decideLater: () => void
}

const REFUSED = 'changed_meanwhile'

/** Keeps the version that a form began with, because the page may load a newer one in the meantime. */
export function useVersion<Present extends object>(first: string | undefined): FormVersion<Present> {
  const [version, setVersion] = useState(first)
  const [present, setPresent] = useState<Present>()
  return {
    version,
    present,
    continueFrom: (next) => {
      setVersion(next)
      setPresent(undefined)
    },
    isOutdated: (error) => {
      if (!(error instanceof ApiError) || error.code !== REFUSED || error.present === undefined) return false
      setPresent(error.present as Present)
      return true
    },
    decideLater: () => setPresent(undefined),
  }
}
