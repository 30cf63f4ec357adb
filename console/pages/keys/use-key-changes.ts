import { useQueryClient } from '@tanstack/react-query'
import { type ApiKey, deleteKey, setKeyEnabled } from '../../api/keys.ts'
import { showNotice, showFailure } from '../../components/notify.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** Functions that change a key and then reload the lists of keys. */
export function useKeyChanges() {
  const texts = useTexts()
  const { keys } = texts
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const reload = async (): Promise<void> => {
    await Promise.all(
      ['keys', 'key', 'stopped-keys'].map((name) =>
        client.invalidateQueries({ queryKey: [profile.id, name] }),
      ),
    )
  }
  const turn = async (key: ApiKey, isEnabled: boolean): Promise<void> => {
    try {
      await setKeyEnabled(key.id, isEnabled)
      await reload()
      if (!isEnabled)
        showNotice(keys.disabled(key.name), { label: keys.undo, run: () => void turn(key, true) })
    } catch (error) {
      showFailure(error, texts)
    }
  }
  const remove = async (key: ApiKey): Promise<void> => {
    await deleteKey(key.id)
    await reload()
    showNotice(keys.deleted(key.name))
  }
  return { turn, remove, reload }
}
