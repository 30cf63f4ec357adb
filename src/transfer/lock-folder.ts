import { DataFolderInUse, type DataFolderLock, waitAndLockDataFolder } from '../store/data-folder.ts'

/**
 * Locks the data folder of a gateway and its embedded database. Waits until other commands release them. Rejects while a
 * gateway runs on one of them; `because` is the reason at the end of the error message.
 */
export async function lockFolder(
  dataDir: string,
  database: string,
  because: string,
): Promise<DataFolderLock> {
  try {
    return await waitAndLockDataFolder(dataDir, 'command', database)
  } catch (error) {
    if (!(error instanceof DataFolderInUse)) throw error
    throw new Error(`a gateway or a command runs on ${error.path}: stop it first, ${because}`, {
      cause: error,
    })
  }
}
