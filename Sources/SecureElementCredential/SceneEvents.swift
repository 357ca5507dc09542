// SPDX-License-Identifier: MIT

import Synchronization

/// Why the system connected a scene of an app that may present credentials.
public enum CredentialSessionWindowSceneEvent: Codable, Hashable, CustomStringConvertible, Sendable {
    /// A reader's field was seen, and this is the default contactless app.
    case readerDetected
    /// The person asked for it with a gesture.
    case presentation

    public var description: String {
        switch self {
        case .readerDetected: "readerDetected"
        case .presentation: "presentation"
        }
    }
}

/// A scene that is told why it was connected.
public protocol CredentialSessionWindowSceneDelegate: AnyObject, Sendable {
    func windowScene(
        _ windowScene: any PresentationContext,
        didReceiveCredentialSessionWindowSceneEvent event: CredentialSessionWindowSceneEvent
    )
}

struct SceneLink: Sendable {
    var context: any PresentationContext
    weak var delegate: (any CredentialSessionWindowSceneDelegate)?
}

extension CredentialDevice {
    /// Makes this app the default contactless app, whose scene is told of readers and of the person's gesture.
    ///
    /// Nothing is told without the entitlement for it, while a session is active, or while somebody presents.
    public func becomeDefaultContactlessApp(
        scene: any PresentationContext, delegate: any CredentialSessionWindowSceneDelegate
    ) {
        shared.withLock { $0.scene = SceneLink(context: scene, delegate: delegate) }
    }

    /// The person makes the gesture for the default contactless app.
    public func presentationGesture() { sceneEvent(.presentation) }

    func sceneEvent(_ event: CredentialSessionWindowSceneEvent) {
        let link = shared.withLock { shared -> SceneLink? in
            let isSuppressed = shared.active != nil || shared.ledger.held != nil || shared.isOtherPresenting
            return shared.policy.hasDefaultContactlessAppEntitlement && !isSuppressed ? shared.scene : nil
        }
        if let link { link.delegate?.windowScene(link.context, didReceiveCredentialSessionWindowSceneEvent: event) }
    }
}
