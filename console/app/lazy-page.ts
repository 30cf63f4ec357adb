import type { RouteComponent } from '@tanstack/react-router'
import { type ComponentType, createElement, lazy } from 'react'
import { isGatewayReachable, waitForConnection, reportConnectionLost } from './connection.ts'

/** A flag in the storage of the tab: the page was reloaded once and must not be reloaded again. */
const RELOADED = 'reloaded'

/**
 * A page whose code is loaded when it is opened. If the gateway is unreachable, the page waits. If a newer
 * build has replaced the file, the whole console is reloaded.
 */
export function lazyPage(load: () => Promise<ComponentType>): RouteComponent {
  let loading: Promise<ComponentType> | undefined
  const loadOnce = (): Promise<ComponentType> => (loading ??= loadInTime(load))
  const Lazy = lazy(async () => ({ default: await loadOnce() }))
  const Page: RouteComponent = () => createElement(Lazy)
  Page.preload = async () => {
    await loadOnce()
  }
  return Page
}

async function loadInTime(load: () => Promise<ComponentType>): Promise<ComponentType> {
  for (;;) {
    try {
      const page = await load()
      sessionStorage.removeItem(RELOADED)
      return page
    } catch (error) {
      if (await isGatewayReachable()) return reloadPage(error)
      reportConnectionLost()
      await waitForConnection()
    }
  }
}

function reloadPage(error: unknown): Promise<never> {
  if (sessionStorage.getItem(RELOADED) !== null) throw error
  sessionStorage.setItem(RELOADED, location.pathname)
  location.reload()
  return new Promise(() => {})
}
