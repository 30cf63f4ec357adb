import { DataFolderInUse, type DataFolderLock, waitAndLockDataFolder } from '../store/data-folder.ts'

/**
 * Locks the data folder of a gateway. Waits until other commands release it. Rejects while a gateway runs on
 * it; `because` is the reason at the end of the error message.
 */
export async function lockFolder(dataDir: string, because: string): Promise<DataFolderLock> {
  try {
    return await waitAndLockDataFolder(dataDir, 'command')
  } catch (error) {
    if (!(error instanceof DataFolderInUse)) throw error
    throw new Error(`a gateway or a command runs on ${dataDir}: stop it first, ${because}`, { cause: error })
  }
}
