import type { UseFormReturnType } from '@mantine/form'
import { type ReactNode, useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { differencesOf, mergeEdits, type Words } from './differences.ts'
import { EditConflict } from './edit-conflict.tsx'
import { showNotice } from './notify.tsx'
import { useAction } from './use-action.ts'
import { useTexts } from '../locales/use-texts.tsx'

/** An object with its version, and the form in which it is changed. */
interface Edited<Typed extends object, Present> {
  readonly form: UseFormReturnType<Typed>
  readonly object: Present
  /** Returns the form values of an object. */
  readonly typedOf: (object: Present) => Typed
  readonly labels: Readonly<Record<keyof Typed, string>>
  /** The words for values that are chosen in the form. Those of flags need none. */
  readonly words?: Words<Typed>
  /**
   * Saves the typed values, if the object still has this version. `saved` is that object: the one with which the form began, or
   * one with another user's change, which is kept or overwritten. Resolves to the object as it is saved now.
   */
  readonly save: (typed: Typed, version: string | undefined, saved: Present) => Promise<Present>
  readonly reload: () => Promise<unknown>
  /** Returns the message to show after saving. */
  readonly saved: (typed: Typed) => string
  /** Shows an error at the field that it names; returns false if it names no field. */
  readonly showAtField?: (error: unknown) => boolean
}

/** The form of an object that other users may change at the same time. */
interface Edit<Typed> {
  readonly save: (typed: Typed) => void
  readonly isSaving: boolean
  /** Whether it asks which values to keep. The dialog of a form stays open when Escape closes the question. */
  readonly isAsking: boolean
  readonly error: unknown
  /** The dialog that asks which values to keep if another user saved a change first. */
  readonly conflict: ReactNode
}

const REFUSED = 'changed_meanwhile'

/** Maximum number of other users' changes that one save is merged with. */
const MAX_MERGES = 5

/**
 * Saves changes relative to the object that the form was opened with, because the page may load a newer one
 * later. If another user has changed other fields, both changes are kept; for changes of the same fields, a
 * dialog asks.
 */
export function useMergedEdit<Typed extends object, Present extends { readonly version: string }>({
  form,
  object,
  typedOf,
  labels,
  words,
  save,
  reload,
  saved,
  showAtField = () => false,
}: Edited<Typed, Present>): Edit<Typed> {
  const { audit } = useTexts()
  const [basis, setBasis] = useState(object)
  /** The object as it is now, if another user saved a change first. */
  const [present, setPresent] = useState<Present>()
  const begin = (from: Present, typed: Typed = typedOf(from)): void => {
    form.setValues(typed)
    form.resetDirty(typedOf(from))
    setBasis(from)
    setPresent(undefined)
  }
  const merge = (typed: Typed, theirs: Present) =>
    mergeEdits({ base: typedOf(basis), mine: typed, theirs: typedOf(theirs) })
  /** Resolves to undefined if another user has changed the same fields; a dialog asks about them. */
  const saveMerged = async (typed: Typed, over: Present | undefined): Promise<Present | undefined> => {
    let based = over
    for (let merges = 0; ; merges += 1) {
      try {
        const saved = based ?? basis
        return await save(based ? merge(typed, based).merged : typed, saved.version, saved)
      } catch (error) {
        if (!isOutdated(error) || merges === MAX_MERGES) throw error
        based = error.present as Present
        if (merge(typed, based).collisions.length > 0) return setPresent(based), undefined
      }
    }
  }
  const saving = useAction(async (typed: Typed, over: Present | undefined) => {
    try {
      const now = await saveMerged(typed, over)
      if (now === undefined) return
      // What was typed while the answer was awaited stays typed.
      begin(now, mergeEdits({ base: typed, mine: form.getValues(), theirs: typedOf(now) }).merged)
      await reload()
      showNotice(saved(typed))
    } catch (error) {
      if (!showAtField(error)) throw error
    }
  })
  /** Takes their values where both have changed a field, and keeps what is typed in the others. */
  const take = (from: Present): void => {
    const theirs = typedOf(from)
    const { merged, collisions } = merge(form.values, from)
    begin(from, { ...merged, ...Object.fromEntries(collisions.map((field) => [field, theirs[field]])) })
  }
  const flags = Object.entries(form.values).filter(([, value]) => typeof value === 'boolean')
  const flagWords: object = Object.fromEntries(flags.map(([field]) => [field, audit.words]))
  const conflict = (
    <EditConflict
      differences={
        present &&
        differencesOf(labels, form.values, typedOf(present), merge(form.values, present).collisions, {
          ...flagWords,
          ...words,
        })
      }
      onTake={() => {
        if (present) take(present)
        void reload()
      }}
      onOverwrite={() => {
        setPresent(undefined)
        void saving.run(form.values, present)
      }}
      onClose={() => setPresent(undefined)}
    />
  )
  return {
    save: (typed) => void saving.run(typed, undefined),
    isSaving: saving.isRunning,
    isAsking: present !== undefined,
    error: saving.error,
    conflict,
  }
}

function isOutdated(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === REFUSED && error.present !== undefined
}
