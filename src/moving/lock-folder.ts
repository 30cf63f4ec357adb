import { DataFolderInUse, type DataFolderLock, lockDataFolderInTurn } from '../store/data-folder.ts'

/**
 * Locks the folder of a gateway that must not run meanwhile, once other commands are done with it. Rejects,
 * with a sentence that ends in `because`, where a gateway runs.
 */
export async function lockFolder(dataDir: string, because: string): Promise<DataFolderLock> {
  try {
    return await lockDataFolderInTurn(dataDir, 'command')
  } catch (error) {
    if (!(error instanceof DataFolderInUse)) throw error
    throw new Error(`a gateway or a command runs on ${dataDir}: stop it first, ${because}`, { cause: error })
  }
}
