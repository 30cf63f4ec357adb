import { useQueryClient } from '@tanstack/react-query'
import { type ApiKey, deleteKey, setKeyEnabled } from '../api/keys.ts'
import { showNotice, showFailure } from './notify.tsx'
import { useSignedInAccount } from './session.tsx'
import { useTexts } from '../locales/use-texts.tsx'

/**
 * Functions that change a key and then reload the lists of keys. `ofUser` is the owner of the key, if that is another
 * user.
 */
export function useKeyChanges(ofUser?: number) {
  const texts = useTexts()
  const { keys } = texts
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const reload = async (): Promise<void> => {
    await Promise.all(
      ['keys', 'key', 'stopped-keys', 'user-keys', 'keys-of-all'].map((name) =>
        client.invalidateQueries({ queryKey: [profile.id, name] }),
      ),
    )
  }
  const turn = async (key: ApiKey, isEnabled: boolean): Promise<void> => {
    try {
      await setKeyEnabled(key.id, isEnabled, ofUser)
      await reload()
      if (!isEnabled)
        showNotice(keys.disabled(key.name), { label: keys.undo, run: () => void turn(key, true) })
    } catch (error) {
      showFailure(error, texts)
    }
  }
  const remove = async (key: ApiKey): Promise<void> => {
    await deleteKey(key.id, ofUser)
    await reload()
    showNotice(keys.deleted(key.name))
  }
  return { turn, remove, reload }
}
