import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { appShellQuery } from '../../api/account.ts'
import { ApiError } from '../../api/api-error.ts'
import { type GatewayOption, optionsQuery, setOption } from '../../api/options.ts'
import { showNotice } from '../../components/notify.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'

interface Form {
  /** The typed values that are not saved, by option. */
  readonly typed: ReadonlyMap<string, string>
  /** The options on which changes are based: those that the form began with, not those that the page loads later. */
  readonly basis: readonly GatewayOption[]
  readonly generation: number
}

/** The unsaved changes of the settings, and functions to save or discard them. */
export function useSettingChanges(options: readonly GatewayOption[]) {
  const { common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const [{ typed, basis, generation }, setForm] = useState<Form>({
    typed: new Map(),
    basis: options,
    generation: 0,
  })
  const [refused, setRefused] = useState<{ readonly key: string; readonly message: string }>()
  const [present, setPresent] = useState<GatewayOption>()
  const stored = new Map(options.map(({ key, value }) => [key, value]))
  const changes = [...typed].filter(([key, value]) => stored.get(key) !== value)
  const saving = useAction(async (versions: readonly GatewayOption[]) => {
    setRefused(undefined)
    const saved = new Map<string, string>()
    for (const [key, value] of changes) {
      try {
        await setOption(key, value, versions.find((option) => option.key === key)?.version)
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        const now = error.code === 'changed_meanwhile' ? (error.present as GatewayOption) : undefined
        // Another user may have made the same change.
        if (now?.value !== value) {
          if (saved.size > 0) await forget(saved)
          if (now) setPresent(now)
          else if (error.status === 400) setRefused({ key, message: error.message })
          else throw error
          return
        }
      }
      saved.set(key, value)
    }
    await forget(saved)
    showNotice(common.saved)
  })
  /**
   * Forgets changes that are saved or given up, but not what was typed since, and bases the next ones of these options
   * on what is stored now. If none is left, or one is given up, the form starts again.
   */
  const forget = async (done: ReadonlyMap<string, string>, isGivenUp = false): Promise<void> => {
    const now = new Map((await readStored()).map((option) => [option.key, option]))
    setForm((form) => {
      const left = new Map(
        [...form.typed].filter(([key, value]) => ![done.get(key), now.get(key)?.value].includes(value)),
      )
      const isStart = isGivenUp || left.size === 0
      const isBasedAnew = (key: string): boolean => done.has(key) || (isStart && !left.has(key))
      return {
        typed: left,
        basis: form.basis.map((old) => (isBasedAnew(old.key) && now.get(old.key)) || old),
        generation: form.generation + (isStart ? 1 : 0),
      }
    })
  }
  const readStored = async (): Promise<readonly GatewayOption[]> => {
    const now = await client.fetchQuery({ ...optionsQuery(profile.id), staleTime: 0 })
    await client.invalidateQueries({ queryKey: [profile.id] })
    await client.invalidateQueries({ queryKey: appShellQuery.queryKey })
    return now
  }
  return {
    typed,
    type: (key: string, value: string) =>
      setForm((form) => ({ ...form, typed: new Map(form.typed).set(key, value) })),
    changes,
    refused,
    error: saving.error,
    isSaving: saving.isRunning,
    /**
     * A number that changes when the form starts again. Inputs with a state of their own use it as their
     * React key, so that they are reset.
     */
    generation,
    save: () => void saving.run(basis),
    /** Starts the form again with the stored values. */
    discard() {
      setForm({ typed: new Map(), basis: options, generation: generation + 1 })
      setRefused(undefined)
    },
    /** The option that another user has changed since the form was opened. */
    present,
    take() {
      setPresent(undefined)
      if (present) void forget(new Map([[present.key, typed.get(present.key) ?? '']]), true)
    },
    overwrite() {
      const versions = basis.map((option) => (option.key === present?.key ? present : option))
      setPresent(undefined)
      setForm((form) => ({ ...form, basis: versions }))
      void saving.run(versions)
    },
    leave: () => setPresent(undefined),
  }
}
