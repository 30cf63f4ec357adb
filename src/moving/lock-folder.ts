import { DataFolderInUse, type DataFolderLock, lockDataFolder } from '../store/data-folder.ts'

/** Locks the folder of a gateway that must not run meanwhile. Throws, with a sentence that ends in `because`, where one does. */
export function lockFolder(dataDir: string, because: string): DataFolderLock {
  try {
    return lockDataFolder(dataDir)
  } catch (error) {
    if (!(error instanceof DataFolderInUse)) throw error
    throw new Error(`a gateway or a command runs on ${dataDir}: stop it first, ${because}`, { cause: error })
  }
}
