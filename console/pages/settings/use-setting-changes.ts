import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { appShellQuery } from '../../api/account.ts'
import { ApiError } from '../../api/api-error.ts'
import { type GatewayOption, optionsQuery, setOption } from '../../api/options.ts'
import { showNotice } from '../../components/notify.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'

/** The unsaved changes of the settings, and functions to save or discard them. */
export function useSettingChanges(options: readonly GatewayOption[]) {
  const { common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const [typed, setTyped] = useState<ReadonlyMap<string, string>>(new Map())
  const [refused, setRefused] = useState<{ readonly key: string; readonly message: string }>()
  // Changes are relative to the values that the form was opened with, not to those that the page loads later.
  const [basis, setBasis] = useState(options)
  const [present, setPresent] = useState<GatewayOption>()
  const [generation, setGeneration] = useState(0)
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
          await keepUnsaved(saved)
          if (now) setPresent(now)
          else if (error.status === 400) setRefused({ key, message: error.message })
          else throw error
          return
        }
      }
      saved.set(key, value)
    }
    await begin()
    showNotice(common.saved)
  })
  const restart = (now: readonly GatewayOption[]): void => {
    setTyped(new Map())
    setBasis(now)
    setRefused(undefined)
    setGeneration((before) => before + 1)
  }
  /** Forgets changes that are saved, and bases the next ones of these options on what is stored now. */
  const keepUnsaved = async (saved: ReadonlyMap<string, string>): Promise<void> => {
    if (saved.size === 0) return
    const now = new Map((await readStored()).map((option) => [option.key, option]))
    setBasis((before) => before.map((option) => (saved.has(option.key) && now.get(option.key)) || option))
    setTyped((before) => new Map([...before].filter(([key, value]) => saved.get(key) !== value)))
  }
  const readStored = async (): Promise<readonly GatewayOption[]> => {
    const now = await client.fetchQuery({ ...optionsQuery(profile.id), staleTime: 0 })
    await client.invalidateQueries({ queryKey: [profile.id] })
    await client.invalidateQueries({ queryKey: appShellQuery.queryKey })
    return now
  }
  /** Starts the form again with the stored values. */
  const begin = async (): Promise<void> => restart(await readStored())
  return {
    typed,
    type: (key: string, value: string) => setTyped(new Map(typed).set(key, value)),
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
    discard: () => restart(options),
    /** The option that another user has changed since the form was opened. */
    present,
    take() {
      setPresent(undefined)
      void begin()
    },
    overwrite() {
      const versions = basis.map((option) => (option.key === present?.key ? present : option))
      setPresent(undefined)
      setBasis(versions)
      void saving.run(versions)
    },
    leave: () => setPresent(undefined),
  }
}
