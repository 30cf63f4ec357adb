import { DataFolderInUse, type DataFolderLock, lockDataFolderInTurn } from '../store/data-folder.ts'

/**
 * Locks the data folder of a gateway, waiting for other commands to release it. Rejects while a gateway runs
 * on it, with a sentence that ends in `because`.
 */
export async function lockFolder(dataDir: string, because: string): Promise<DataFolderLock> {
  try {
    return await lockDataFolderInTurn(dataDir, 'command')
  } catch (error) {
    if (!(error instanceof DataFolderInUse)) throw error
    throw new Error(`a gateway or a command runs on ${dataDir}: stop it first, ${because}`, { cause: error })
  }
}
